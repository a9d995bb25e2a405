"""Who somebody is: passwords, SCRAM, tokens and JWTs, and checking them without being slowed down.

A secret never lies in a file in the clear; what lies there is a hash that costs an attacker memory
and time for every guess. `authenticating` is where a proof becomes a principal.
"""

from angarium.security.passwords import PasswordHash
from angarium.security.secret import Secret
from angarium.security.users import Users

__all__ = ["PasswordHash", "Secret", "Users"]
