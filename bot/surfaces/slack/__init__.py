"""The Slack surface: events, commands, buttons and shortcuts handed to the service.

Nothing is decided or answered here. A listener says who asks, where and in which words, and gives
the request a key by which a second delivery is known; the answer leaves by `bot.delivery`.
"""
