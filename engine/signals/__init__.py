"""Signals: raw series become one name, one unit and one scale per quantity."""
