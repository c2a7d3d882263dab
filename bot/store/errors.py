"""The one error of the store.

GpuwhyError
└── StoreError        exit 3  the database cannot be used now, or its address is wrong

The codes tell a caller what kind of trouble it is:

``store_config``       the address cannot be used, or a driver is not installed
``store_unreachable``  there is no such file or server, or it does not answer; may come back
``store_locked``       another program holds the database; try again
``store_denied``       user, password or file mode do not let us in
``store_full``         no space, or no connection left; may come back
``store_damaged``      the file is no database, or a broken one
``store_outdated``     the tables are not those of this version; migrate
``store_refused``      the database refuses a value; a fault of the caller
"""

from __future__ import annotations

from engine.errors import GpuwhyError


class StoreError(GpuwhyError):
    """The database cannot be used now, or its address is wrong.

    The message names the database without user and password, and never holds SQL or values.
    """

    exit_status = 3
    default_code = "store_unreachable"
