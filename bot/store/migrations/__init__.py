"""Changes of the tables, one file each in ``versions``, applied in order by `bot.store.migrate`."""
