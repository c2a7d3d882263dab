"""The conversation: commands, neutral answers, renderers and surfaces over ``engine``."""
