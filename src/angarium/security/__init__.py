"""Who somebody is: passwords as scrypt hashes, and checking them without paying for it each time;
certificates, in `tls`.

A secret never lies in a file in the clear; what lies there is a hash that costs an attacker memory
and time for every guess.
"""

from angarium.security.passwords import PasswordHash
from angarium.security.users import Users

__all__ = ["PasswordHash", "Users"]
