"""What `angarium.__init__` loads on first use, for type checkers."""

from angarium import errors as errors
from angarium.api import Ack as Ack
from angarium.api import GroupConfig as GroupConfig
from angarium.api import TopicConfig as TopicConfig
from angarium.client import Client as Client
from angarium.client import ClientSettings as ClientSettings
from angarium.client import Consumer as Consumer
from angarium.client import DeadLetter as DeadLetter
from angarium.client import Group as Group
from angarium.client import GroupBatch as GroupBatch
from angarium.client import GroupRecord as GroupRecord
from angarium.client import LetterFilter as LetterFilter
from angarium.client import Loss as Loss
from angarium.client import Receipt as Receipt
from angarium.client import ReceivedBatch as ReceivedBatch
from angarium.client import Record as Record
from angarium.client import RecordHeaders as RecordHeaders
from angarium.client import Subscription as Subscription
from angarium.client import SyncClient as SyncClient
from angarium.client.handlers.app import App as App
from angarium.client.handlers.handler import Reject as Reject
from angarium.client.handlers.handler import Retry as Retry
from angarium.kinds import Behind as Behind
from angarium.kinds import GroupKind as GroupKind
from angarium.kinds import Poison as Poison
from angarium.modes import DeliveryMode as DeliveryMode

__version__: str
__all__: list[str]
