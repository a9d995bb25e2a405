from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DeliveryMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DELIVERY_MODE_UNSPECIFIED: _ClassVar[DeliveryMode]
    DELIVERY_MODE_CONSISTENT: _ClassVar[DeliveryMode]
    DELIVERY_MODE_EVENTUAL: _ClassVar[DeliveryMode]
    DELIVERY_MODE_PERFORMANCE: _ClassVar[DeliveryMode]

class Format(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FORMAT_UNSPECIFIED: _ClassVar[Format]
    FORMAT_RECORDS: _ClassVar[Format]
    FORMAT_BATCHES: _ClassVar[Format]

class GroupKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GROUP_KIND_UNSPECIFIED: _ClassVar[GroupKind]
    GROUP_KIND_STREAM: _ClassVar[GroupKind]
    GROUP_KIND_QUEUE: _ClassVar[GroupKind]
    GROUP_KIND_KEY: _ClassVar[GroupKind]
    GROUP_KIND_CHECKPOINT: _ClassVar[GroupKind]

class Poison(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    POISON_UNSPECIFIED: _ClassVar[Poison]
    POISON_DEAD_LETTER: _ClassVar[Poison]
    POISON_RETRY: _ClassVar[Poison]
    POISON_STOP: _ClassVar[Poison]

class Behind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BEHIND_UNSPECIFIED: _ClassVar[Behind]
    BEHIND_ERROR: _ClassVar[Behind]
    BEHIND_JUMP: _ClassVar[Behind]

class Verb(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERB_UNSPECIFIED: _ClassVar[Verb]
    VERB_ACK: _ClassVar[Verb]
    VERB_NACK: _ClassVar[Verb]
    VERB_RELEASE: _ClassVar[Verb]
    VERB_EXTEND: _ClassVar[Verb]
    VERB_REJECT: _ClassVar[Verb]
DELIVERY_MODE_UNSPECIFIED: DeliveryMode
DELIVERY_MODE_CONSISTENT: DeliveryMode
DELIVERY_MODE_EVENTUAL: DeliveryMode
DELIVERY_MODE_PERFORMANCE: DeliveryMode
FORMAT_UNSPECIFIED: Format
FORMAT_RECORDS: Format
FORMAT_BATCHES: Format
GROUP_KIND_UNSPECIFIED: GroupKind
GROUP_KIND_STREAM: GroupKind
GROUP_KIND_QUEUE: GroupKind
GROUP_KIND_KEY: GroupKind
GROUP_KIND_CHECKPOINT: GroupKind
POISON_UNSPECIFIED: Poison
POISON_DEAD_LETTER: Poison
POISON_RETRY: Poison
POISON_STOP: Poison
BEHIND_UNSPECIFIED: Behind
BEHIND_ERROR: Behind
BEHIND_JUMP: Behind
VERB_UNSPECIFIED: Verb
VERB_ACK: Verb
VERB_NACK: Verb
VERB_RELEASE: Verb
VERB_EXTEND: Verb
VERB_REJECT: Verb

class Header(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: bytes
    def __init__(self, name: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...

class NewRecord(_message.Message):
    __slots__ = ("key", "value", "headers", "timestamp_us", "expires_at_us", "expires_after_ms", "deliver_at_us", "deliver_after_ms")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_US_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_US_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    DELIVER_AT_US_FIELD_NUMBER: _ClassVar[int]
    DELIVER_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    value: bytes
    headers: _containers.RepeatedCompositeFieldContainer[Header]
    timestamp_us: int
    expires_at_us: int
    expires_after_ms: int
    deliver_at_us: int
    deliver_after_ms: int
    def __init__(self, key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., headers: _Optional[_Iterable[_Union[Header, _Mapping]]] = ..., timestamp_us: _Optional[int] = ..., expires_at_us: _Optional[int] = ..., expires_after_ms: _Optional[int] = ..., deliver_at_us: _Optional[int] = ..., deliver_after_ms: _Optional[int] = ...) -> None: ...

class Record(_message.Message):
    __slots__ = ("offset", "key", "value", "headers", "timestamp_us", "append_time_us", "expires_at_us", "deliver_at_us")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_US_FIELD_NUMBER: _ClassVar[int]
    APPEND_TIME_US_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_US_FIELD_NUMBER: _ClassVar[int]
    DELIVER_AT_US_FIELD_NUMBER: _ClassVar[int]
    offset: int
    key: bytes
    value: bytes
    headers: _containers.RepeatedCompositeFieldContainer[Header]
    timestamp_us: int
    append_time_us: int
    expires_at_us: int
    deliver_at_us: int
    def __init__(self, offset: _Optional[int] = ..., key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., headers: _Optional[_Iterable[_Union[Header, _Mapping]]] = ..., timestamp_us: _Optional[int] = ..., append_time_us: _Optional[int] = ..., expires_at_us: _Optional[int] = ..., deliver_at_us: _Optional[int] = ...) -> None: ...

class Producer(_message.Message):
    __slots__ = ("id", "epoch", "sequence")
    ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    id: int
    epoch: int
    sequence: int
    def __init__(self, id: _Optional[int] = ..., epoch: _Optional[int] = ..., sequence: _Optional[int] = ...) -> None: ...

class Ack(_message.Message):
    __slots__ = ("mode", "topic", "partition", "offset", "next_offset", "append_time_us", "term", "id", "subscribers", "provisional", "duplicate", "error")
    MODE_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    APPEND_TIME_US_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBERS_FIELD_NUMBER: _ClassVar[int]
    PROVISIONAL_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    mode: DeliveryMode
    topic: str
    partition: int
    offset: int
    next_offset: int
    append_time_us: int
    term: int
    id: str
    subscribers: int
    provisional: bool
    duplicate: bool
    error: Error
    def __init__(self, mode: _Optional[_Union[DeliveryMode, str]] = ..., topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., next_offset: _Optional[int] = ..., append_time_us: _Optional[int] = ..., term: _Optional[int] = ..., id: _Optional[str] = ..., subscribers: _Optional[int] = ..., provisional: _Optional[bool] = ..., duplicate: _Optional[bool] = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class Error(_message.Message):
    __slots__ = ("code", "message", "retriable")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRIABLE_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    retriable: bool
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., retriable: _Optional[bool] = ...) -> None: ...

class PublishRequest(_message.Message):
    __slots__ = ("topic", "partition", "record", "mode", "producer")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    record: NewRecord
    mode: DeliveryMode
    producer: Producer
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., record: _Optional[_Union[NewRecord, _Mapping]] = ..., mode: _Optional[_Union[DeliveryMode, str]] = ..., producer: _Optional[_Union[Producer, _Mapping]] = ...) -> None: ...

class PublishResponse(_message.Message):
    __slots__ = ("ack",)
    ACK_FIELD_NUMBER: _ClassVar[int]
    ack: Ack
    def __init__(self, ack: _Optional[_Union[Ack, _Mapping]] = ...) -> None: ...

class PublishBatchRequest(_message.Message):
    __slots__ = ("topic", "partition", "records", "packed", "mode", "producer")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    PACKED_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    records: _containers.RepeatedCompositeFieldContainer[NewRecord]
    packed: bytes
    mode: DeliveryMode
    producer: Producer
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., records: _Optional[_Iterable[_Union[NewRecord, _Mapping]]] = ..., packed: _Optional[bytes] = ..., mode: _Optional[_Union[DeliveryMode, str]] = ..., producer: _Optional[_Union[Producer, _Mapping]] = ...) -> None: ...

class PublishBatchResponse(_message.Message):
    __slots__ = ("acks", "partitions")
    ACKS_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    acks: _containers.RepeatedCompositeFieldContainer[Ack]
    partitions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, acks: _Optional[_Iterable[_Union[Ack, _Mapping]]] = ..., partitions: _Optional[_Iterable[int]] = ...) -> None: ...

class PublishStreamRequest(_message.Message):
    __slots__ = ("number", "publish", "batch")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PUBLISH_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    number: int
    publish: PublishRequest
    batch: PublishBatchRequest
    def __init__(self, number: _Optional[int] = ..., publish: _Optional[_Union[PublishRequest, _Mapping]] = ..., batch: _Optional[_Union[PublishBatchRequest, _Mapping]] = ...) -> None: ...

class PublishStreamResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[PublishStreamResult]
    def __init__(self, results: _Optional[_Iterable[_Union[PublishStreamResult, _Mapping]]] = ...) -> None: ...

class PublishStreamResult(_message.Message):
    __slots__ = ("number", "acks", "error")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ACKS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    number: int
    acks: _containers.RepeatedCompositeFieldContainer[Ack]
    error: Error
    def __init__(self, number: _Optional[int] = ..., acks: _Optional[_Iterable[_Union[Ack, _Mapping]]] = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class Start(_message.Message):
    __slots__ = ("earliest", "latest", "offset", "timestamp_us")
    class Earliest(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class Latest(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    EARLIEST_FIELD_NUMBER: _ClassVar[int]
    LATEST_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_US_FIELD_NUMBER: _ClassVar[int]
    earliest: Start.Earliest
    latest: Start.Latest
    offset: int
    timestamp_us: int
    def __init__(self, earliest: _Optional[_Union[Start.Earliest, _Mapping]] = ..., latest: _Optional[_Union[Start.Latest, _Mapping]] = ..., offset: _Optional[int] = ..., timestamp_us: _Optional[int] = ...) -> None: ...

class Interest(_message.Message):
    __slots__ = ("topic", "partition", "start")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    start: Start
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., start: _Optional[_Union[Start, _Mapping]] = ...) -> None: ...

class SubscribeRequest(_message.Message):
    __slots__ = ("open", "add", "drop", "credit", "settle")
    class Open(_message.Message):
        __slots__ = ("interests", "format", "credit", "group")
        INTERESTS_FIELD_NUMBER: _ClassVar[int]
        FORMAT_FIELD_NUMBER: _ClassVar[int]
        CREDIT_FIELD_NUMBER: _ClassVar[int]
        GROUP_FIELD_NUMBER: _ClassVar[int]
        interests: _containers.RepeatedCompositeFieldContainer[Interest]
        format: Format
        credit: int
        group: Membership
        def __init__(self, interests: _Optional[_Iterable[_Union[Interest, _Mapping]]] = ..., format: _Optional[_Union[Format, str]] = ..., credit: _Optional[int] = ..., group: _Optional[_Union[Membership, _Mapping]] = ...) -> None: ...
    class Settle(_message.Message):
        __slots__ = ("number", "settlements")
        NUMBER_FIELD_NUMBER: _ClassVar[int]
        SETTLEMENTS_FIELD_NUMBER: _ClassVar[int]
        number: int
        settlements: _containers.RepeatedCompositeFieldContainer[Settlement]
        def __init__(self, number: _Optional[int] = ..., settlements: _Optional[_Iterable[_Union[Settlement, _Mapping]]] = ...) -> None: ...
    class Add(_message.Message):
        __slots__ = ("interests",)
        INTERESTS_FIELD_NUMBER: _ClassVar[int]
        interests: _containers.RepeatedCompositeFieldContainer[Interest]
        def __init__(self, interests: _Optional[_Iterable[_Union[Interest, _Mapping]]] = ...) -> None: ...
    class Drop(_message.Message):
        __slots__ = ("topic", "partition")
        TOPIC_FIELD_NUMBER: _ClassVar[int]
        PARTITION_FIELD_NUMBER: _ClassVar[int]
        topic: str
        partition: int
        def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ...) -> None: ...
    class Credit(_message.Message):
        __slots__ = ("records",)
        RECORDS_FIELD_NUMBER: _ClassVar[int]
        records: int
        def __init__(self, records: _Optional[int] = ...) -> None: ...
    OPEN_FIELD_NUMBER: _ClassVar[int]
    ADD_FIELD_NUMBER: _ClassVar[int]
    DROP_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    SETTLE_FIELD_NUMBER: _ClassVar[int]
    open: SubscribeRequest.Open
    add: SubscribeRequest.Add
    drop: SubscribeRequest.Drop
    credit: SubscribeRequest.Credit
    settle: SubscribeRequest.Settle
    def __init__(self, open: _Optional[_Union[SubscribeRequest.Open, _Mapping]] = ..., add: _Optional[_Union[SubscribeRequest.Add, _Mapping]] = ..., drop: _Optional[_Union[SubscribeRequest.Drop, _Mapping]] = ..., credit: _Optional[_Union[SubscribeRequest.Credit, _Mapping]] = ..., settle: _Optional[_Union[SubscribeRequest.Settle, _Mapping]] = ...) -> None: ...

class Membership(_message.Message):
    __slots__ = ("group", "topics", "kind", "start", "config", "member", "held")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    group: str
    topics: _containers.RepeatedScalarFieldContainer[str]
    kind: GroupKind
    start: Start
    config: GroupConfig
    member: str
    held: _containers.RepeatedCompositeFieldContainer[Held]
    def __init__(self, group: _Optional[str] = ..., topics: _Optional[_Iterable[str]] = ..., kind: _Optional[_Union[GroupKind, str]] = ..., start: _Optional[_Union[Start, _Mapping]] = ..., config: _Optional[_Union[GroupConfig, _Mapping]] = ..., member: _Optional[str] = ..., held: _Optional[_Iterable[_Union[Held, _Mapping]]] = ...) -> None: ...

class Held(_message.Message):
    __slots__ = ("topic", "partition", "ranges", "attempt")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    ranges: _containers.RepeatedScalarFieldContainer[int]
    attempt: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., ranges: _Optional[_Iterable[int]] = ..., attempt: _Optional[int] = ...) -> None: ...

class Settlement(_message.Message):
    __slots__ = ("topic", "partition", "verb", "ranges", "delay_ms", "reason", "cumulative", "generation")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    VERB_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CUMULATIVE_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    verb: Verb
    ranges: _containers.RepeatedScalarFieldContainer[int]
    delay_ms: int
    reason: str
    cumulative: bool
    generation: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., verb: _Optional[_Union[Verb, str]] = ..., ranges: _Optional[_Iterable[int]] = ..., delay_ms: _Optional[int] = ..., reason: _Optional[str] = ..., cumulative: _Optional[bool] = ..., generation: _Optional[int] = ...) -> None: ...

class Settled(_message.Message):
    __slots__ = ("records", "error")
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    records: int
    error: Error
    def __init__(self, records: _Optional[int] = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class SubscribeResponse(_message.Message):
    __slots__ = ("topic", "partition", "live", "records", "batches", "from_offset", "expired", "joined", "answered", "ranges", "attempt", "lease_ms", "generation")
    class Joined(_message.Message):
        __slots__ = ("member", "kind", "config")
        MEMBER_FIELD_NUMBER: _ClassVar[int]
        KIND_FIELD_NUMBER: _ClassVar[int]
        CONFIG_FIELD_NUMBER: _ClassVar[int]
        member: str
        kind: GroupKind
        config: GroupConfig
        def __init__(self, member: _Optional[str] = ..., kind: _Optional[_Union[GroupKind, str]] = ..., config: _Optional[_Union[GroupConfig, _Mapping]] = ...) -> None: ...
    class Answered(_message.Message):
        __slots__ = ("number", "settled")
        NUMBER_FIELD_NUMBER: _ClassVar[int]
        SETTLED_FIELD_NUMBER: _ClassVar[int]
        number: int
        settled: _containers.RepeatedCompositeFieldContainer[Settled]
        def __init__(self, number: _Optional[int] = ..., settled: _Optional[_Iterable[_Union[Settled, _Mapping]]] = ...) -> None: ...
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    FROM_OFFSET_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    JOINED_FIELD_NUMBER: _ClassVar[int]
    ANSWERED_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    live: bool
    records: _containers.RepeatedCompositeFieldContainer[Record]
    batches: bytes
    from_offset: int
    expired: _containers.RepeatedScalarFieldContainer[int]
    joined: SubscribeResponse.Joined
    answered: SubscribeResponse.Answered
    ranges: _containers.RepeatedScalarFieldContainer[int]
    attempt: int
    lease_ms: int
    generation: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., live: _Optional[bool] = ..., records: _Optional[_Iterable[_Union[Record, _Mapping]]] = ..., batches: _Optional[bytes] = ..., from_offset: _Optional[int] = ..., expired: _Optional[_Iterable[int]] = ..., joined: _Optional[_Union[SubscribeResponse.Joined, _Mapping]] = ..., answered: _Optional[_Union[SubscribeResponse.Answered, _Mapping]] = ..., ranges: _Optional[_Iterable[int]] = ..., attempt: _Optional[int] = ..., lease_ms: _Optional[int] = ..., generation: _Optional[int] = ...) -> None: ...

class FetchRequest(_message.Message):
    __slots__ = ("topic", "partition", "offset", "bytes_max", "wait_ms", "fresh", "format")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    FRESH_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    offset: int
    bytes_max: int
    wait_ms: int
    fresh: bool
    format: Format
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., bytes_max: _Optional[int] = ..., wait_ms: _Optional[int] = ..., fresh: _Optional[bool] = ..., format: _Optional[_Union[Format, str]] = ...) -> None: ...

class FetchResponse(_message.Message):
    __slots__ = ("start_offset", "end_offset", "next_offset", "records", "batches", "expired")
    START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    start_offset: int
    end_offset: int
    next_offset: int
    records: _containers.RepeatedCompositeFieldContainer[Record]
    batches: bytes
    expired: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, start_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., next_offset: _Optional[int] = ..., records: _Optional[_Iterable[_Union[Record, _Mapping]]] = ..., batches: _Optional[bytes] = ..., expired: _Optional[_Iterable[int]] = ...) -> None: ...

class FindOffsetRequest(_message.Message):
    __slots__ = ("topic", "partition", "start")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    start: Start
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., start: _Optional[_Union[Start, _Mapping]] = ...) -> None: ...

class FindOffsetResponse(_message.Message):
    __slots__ = ("offset",)
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    offset: int
    def __init__(self, offset: _Optional[int] = ...) -> None: ...

class OpenProducerRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class OpenProducerResponse(_message.Message):
    __slots__ = ("producer_id", "epoch")
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    producer_id: int
    epoch: int
    def __init__(self, producer_id: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class GroupConfig(_message.Message):
    __slots__ = ("max_attempts", "ack_timeout_ms", "backoff_min_ms", "backoff_max_ms", "dead_letter_topic", "poison", "behind")
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    ACK_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_MIN_MS_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_MAX_MS_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_TOPIC_FIELD_NUMBER: _ClassVar[int]
    POISON_FIELD_NUMBER: _ClassVar[int]
    BEHIND_FIELD_NUMBER: _ClassVar[int]
    max_attempts: int
    ack_timeout_ms: int
    backoff_min_ms: int
    backoff_max_ms: int
    dead_letter_topic: str
    poison: Poison
    behind: Behind
    def __init__(self, max_attempts: _Optional[int] = ..., ack_timeout_ms: _Optional[int] = ..., backoff_min_ms: _Optional[int] = ..., backoff_max_ms: _Optional[int] = ..., dead_letter_topic: _Optional[str] = ..., poison: _Optional[_Union[Poison, str]] = ..., behind: _Optional[_Union[Behind, str]] = ...) -> None: ...

class GroupMember(_message.Message):
    __slots__ = ("name", "node", "partitions", "pending")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    name: str
    node: int
    partitions: _containers.RepeatedCompositeFieldContainer[TopicPartition]
    pending: int
    def __init__(self, name: _Optional[str] = ..., node: _Optional[int] = ..., partitions: _Optional[_Iterable[_Union[TopicPartition, _Mapping]]] = ..., pending: _Optional[int] = ...) -> None: ...

class TopicPartition(_message.Message):
    __slots__ = ("topic", "partition")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ...) -> None: ...

class GroupPosition(_message.Message):
    __slots__ = ("topic", "partition", "floor", "start_offset", "end_offset", "acked_above", "pending", "retrying", "lag", "lag_ms", "is_behind", "owner")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    ACKED_ABOVE_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    RETRYING_FIELD_NUMBER: _ClassVar[int]
    LAG_FIELD_NUMBER: _ClassVar[int]
    LAG_MS_FIELD_NUMBER: _ClassVar[int]
    IS_BEHIND_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    floor: int
    start_offset: int
    end_offset: int
    acked_above: int
    pending: int
    retrying: int
    lag: int
    lag_ms: int
    is_behind: bool
    owner: str
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., floor: _Optional[int] = ..., start_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., acked_above: _Optional[int] = ..., pending: _Optional[int] = ..., retrying: _Optional[int] = ..., lag: _Optional[int] = ..., lag_ms: _Optional[int] = ..., is_behind: _Optional[bool] = ..., owner: _Optional[str] = ...) -> None: ...

class GroupInfo(_message.Message):
    __slots__ = ("name", "kind", "config", "paused", "members", "positions", "lag")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    LAG_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: GroupKind
    config: GroupConfig
    paused: bool
    members: _containers.RepeatedCompositeFieldContainer[GroupMember]
    positions: _containers.RepeatedCompositeFieldContainer[GroupPosition]
    lag: int
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[_Union[GroupKind, str]] = ..., config: _Optional[_Union[GroupConfig, _Mapping]] = ..., paused: _Optional[bool] = ..., members: _Optional[_Iterable[_Union[GroupMember, _Mapping]]] = ..., positions: _Optional[_Iterable[_Union[GroupPosition, _Mapping]]] = ..., lag: _Optional[int] = ...) -> None: ...

class SettleRequest(_message.Message):
    __slots__ = ("group", "member", "settlements")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    SETTLEMENTS_FIELD_NUMBER: _ClassVar[int]
    group: str
    member: str
    settlements: _containers.RepeatedCompositeFieldContainer[Settlement]
    def __init__(self, group: _Optional[str] = ..., member: _Optional[str] = ..., settlements: _Optional[_Iterable[_Union[Settlement, _Mapping]]] = ...) -> None: ...

class SettleResponse(_message.Message):
    __slots__ = ("settled",)
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    settled: _containers.RepeatedCompositeFieldContainer[Settled]
    def __init__(self, settled: _Optional[_Iterable[_Union[Settled, _Mapping]]] = ...) -> None: ...

class ListGroupsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListGroupsResponse(_message.Message):
    __slots__ = ("groups",)
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[GroupInfo]
    def __init__(self, groups: _Optional[_Iterable[_Union[GroupInfo, _Mapping]]] = ...) -> None: ...

class DescribeGroupRequest(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: str
    def __init__(self, group: _Optional[str] = ...) -> None: ...

class DescribeGroupResponse(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: GroupInfo
    def __init__(self, group: _Optional[_Union[GroupInfo, _Mapping]] = ...) -> None: ...

class AlterGroupRequest(_message.Message):
    __slots__ = ("group", "config")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    group: str
    config: GroupConfig
    def __init__(self, group: _Optional[str] = ..., config: _Optional[_Union[GroupConfig, _Mapping]] = ...) -> None: ...

class AlterGroupResponse(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: GroupInfo
    def __init__(self, group: _Optional[_Union[GroupInfo, _Mapping]] = ...) -> None: ...

class SeekGroupRequest(_message.Message):
    __slots__ = ("group", "topic", "partition", "start", "dry_run")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    group: str
    topic: str
    partition: int
    start: Start
    dry_run: bool
    def __init__(self, group: _Optional[str] = ..., topic: _Optional[str] = ..., partition: _Optional[int] = ..., start: _Optional[_Union[Start, _Mapping]] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class SeekGroupResponse(_message.Message):
    __slots__ = ("moved",)
    class Moved(_message.Message):
        __slots__ = ("topic", "partition", "old_floor", "new_floor")
        TOPIC_FIELD_NUMBER: _ClassVar[int]
        PARTITION_FIELD_NUMBER: _ClassVar[int]
        OLD_FLOOR_FIELD_NUMBER: _ClassVar[int]
        NEW_FLOOR_FIELD_NUMBER: _ClassVar[int]
        topic: str
        partition: int
        old_floor: int
        new_floor: int
        def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., old_floor: _Optional[int] = ..., new_floor: _Optional[int] = ...) -> None: ...
    MOVED_FIELD_NUMBER: _ClassVar[int]
    moved: _containers.RepeatedCompositeFieldContainer[SeekGroupResponse.Moved]
    def __init__(self, moved: _Optional[_Iterable[_Union[SeekGroupResponse.Moved, _Mapping]]] = ...) -> None: ...

class PauseGroupRequest(_message.Message):
    __slots__ = ("group", "undo")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    UNDO_FIELD_NUMBER: _ClassVar[int]
    group: str
    undo: bool
    def __init__(self, group: _Optional[str] = ..., undo: _Optional[bool] = ...) -> None: ...

class PauseGroupResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeleteGroupRequest(_message.Message):
    __slots__ = ("group", "topic")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    group: str
    topic: str
    def __init__(self, group: _Optional[str] = ..., topic: _Optional[str] = ...) -> None: ...

class DeleteGroupResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReportCheckpointsRequest(_message.Message):
    __slots__ = ("group", "checkpoints")
    class Checkpoint(_message.Message):
        __slots__ = ("topic", "partition", "offset")
        TOPIC_FIELD_NUMBER: _ClassVar[int]
        PARTITION_FIELD_NUMBER: _ClassVar[int]
        OFFSET_FIELD_NUMBER: _ClassVar[int]
        topic: str
        partition: int
        offset: int
        def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    group: str
    checkpoints: _containers.RepeatedCompositeFieldContainer[ReportCheckpointsRequest.Checkpoint]
    def __init__(self, group: _Optional[str] = ..., checkpoints: _Optional[_Iterable[_Union[ReportCheckpointsRequest.Checkpoint, _Mapping]]] = ...) -> None: ...

class ReportCheckpointsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TopicConfig(_message.Message):
    __slots__ = ("replication", "mode", "retention_ms", "retention_bytes", "batch_bytes_max", "expiry_ms", "retention_groups", "compact", "tombstone_ms", "dirty_percent")
    REPLICATION_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    RETENTION_MS_FIELD_NUMBER: _ClassVar[int]
    RETENTION_BYTES_FIELD_NUMBER: _ClassVar[int]
    BATCH_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    EXPIRY_MS_FIELD_NUMBER: _ClassVar[int]
    RETENTION_GROUPS_FIELD_NUMBER: _ClassVar[int]
    COMPACT_FIELD_NUMBER: _ClassVar[int]
    TOMBSTONE_MS_FIELD_NUMBER: _ClassVar[int]
    DIRTY_PERCENT_FIELD_NUMBER: _ClassVar[int]
    replication: int
    mode: DeliveryMode
    retention_ms: int
    retention_bytes: int
    batch_bytes_max: int
    expiry_ms: int
    retention_groups: bool
    compact: bool
    tombstone_ms: int
    dirty_percent: int
    def __init__(self, replication: _Optional[int] = ..., mode: _Optional[_Union[DeliveryMode, str]] = ..., retention_ms: _Optional[int] = ..., retention_bytes: _Optional[int] = ..., batch_bytes_max: _Optional[int] = ..., expiry_ms: _Optional[int] = ..., retention_groups: _Optional[bool] = ..., compact: _Optional[bool] = ..., tombstone_ms: _Optional[int] = ..., dirty_percent: _Optional[int] = ...) -> None: ...

class PartitionInfo(_message.Message):
    __slots__ = ("number", "replicas", "leader", "start_offset", "end_offset", "in_sync", "handed_on", "trouble")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    IN_SYNC_FIELD_NUMBER: _ClassVar[int]
    HANDED_ON_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    number: int
    replicas: _containers.RepeatedScalarFieldContainer[int]
    leader: int
    start_offset: int
    end_offset: int
    in_sync: Nodes
    handed_on: int
    trouble: str
    def __init__(self, number: _Optional[int] = ..., replicas: _Optional[_Iterable[int]] = ..., leader: _Optional[int] = ..., start_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., in_sync: _Optional[_Union[Nodes, _Mapping]] = ..., handed_on: _Optional[int] = ..., trouble: _Optional[str] = ...) -> None: ...

class Nodes(_message.Message):
    __slots__ = ("ids",)
    IDS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, ids: _Optional[_Iterable[int]] = ...) -> None: ...

class TopicInfo(_message.Message):
    __slots__ = ("id", "name", "config", "partitions", "created_at_us")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_US_FIELD_NUMBER: _ClassVar[int]
    id: int
    name: str
    config: TopicConfig
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionInfo]
    created_at_us: int
    def __init__(self, id: _Optional[int] = ..., name: _Optional[str] = ..., config: _Optional[_Union[TopicConfig, _Mapping]] = ..., partitions: _Optional[_Iterable[_Union[PartitionInfo, _Mapping]]] = ..., created_at_us: _Optional[int] = ...) -> None: ...

class CreateTopicRequest(_message.Message):
    __slots__ = ("name", "partitions", "config")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    name: str
    partitions: int
    config: TopicConfig
    def __init__(self, name: _Optional[str] = ..., partitions: _Optional[int] = ..., config: _Optional[_Union[TopicConfig, _Mapping]] = ...) -> None: ...

class CreateTopicResponse(_message.Message):
    __slots__ = ("topic",)
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    topic: TopicInfo
    def __init__(self, topic: _Optional[_Union[TopicInfo, _Mapping]] = ...) -> None: ...

class AlterTopicRequest(_message.Message):
    __slots__ = ("name", "partitions", "config")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    name: str
    partitions: int
    config: TopicConfig
    def __init__(self, name: _Optional[str] = ..., partitions: _Optional[int] = ..., config: _Optional[_Union[TopicConfig, _Mapping]] = ...) -> None: ...

class AlterTopicResponse(_message.Message):
    __slots__ = ("topic",)
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    topic: TopicInfo
    def __init__(self, topic: _Optional[_Union[TopicInfo, _Mapping]] = ...) -> None: ...

class DeleteTopicRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DeleteTopicResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListTopicsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListTopicsResponse(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[TopicInfo]
    def __init__(self, topics: _Optional[_Iterable[_Union[TopicInfo, _Mapping]]] = ...) -> None: ...

class DescribeTopicRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DescribeTopicResponse(_message.Message):
    __slots__ = ("topic",)
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    topic: TopicInfo
    def __init__(self, topic: _Optional[_Union[TopicInfo, _Mapping]] = ...) -> None: ...

class NodeInfo(_message.Message):
    __slots__ = ("id", "addresses", "region", "zone", "host", "draining", "alive", "leads", "replicas", "level_max", "unready", "clock_ahead_ms", "clock_agrees")
    class AddressesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    LEADS_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    LEVEL_MAX_FIELD_NUMBER: _ClassVar[int]
    UNREADY_FIELD_NUMBER: _ClassVar[int]
    CLOCK_AHEAD_MS_FIELD_NUMBER: _ClassVar[int]
    CLOCK_AGREES_FIELD_NUMBER: _ClassVar[int]
    id: int
    addresses: _containers.ScalarMap[str, str]
    region: str
    zone: str
    host: str
    draining: bool
    alive: bool
    leads: int
    replicas: int
    level_max: int
    unready: _containers.RepeatedScalarFieldContainer[str]
    clock_ahead_ms: int
    clock_agrees: bool
    def __init__(self, id: _Optional[int] = ..., addresses: _Optional[_Mapping[str, str]] = ..., region: _Optional[str] = ..., zone: _Optional[str] = ..., host: _Optional[str] = ..., draining: _Optional[bool] = ..., alive: _Optional[bool] = ..., leads: _Optional[int] = ..., replicas: _Optional[int] = ..., level_max: _Optional[int] = ..., unready: _Optional[_Iterable[str]] = ..., clock_ahead_ms: _Optional[int] = ..., clock_agrees: _Optional[bool] = ...) -> None: ...

class GetClusterStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetClusterStatusResponse(_message.Message):
    __slots__ = ("cluster_id", "node", "catalog_leader", "catalog_index", "nodes", "topics", "partitions", "feature_level", "version", "catalog_in_sync")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    CATALOG_LEADER_FIELD_NUMBER: _ClassVar[int]
    CATALOG_INDEX_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    FEATURE_LEVEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CATALOG_IN_SYNC_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    node: int
    catalog_leader: int
    catalog_index: int
    nodes: _containers.RepeatedCompositeFieldContainer[NodeInfo]
    topics: int
    partitions: int
    feature_level: int
    version: str
    catalog_in_sync: Nodes
    def __init__(self, cluster_id: _Optional[str] = ..., node: _Optional[int] = ..., catalog_leader: _Optional[int] = ..., catalog_index: _Optional[int] = ..., nodes: _Optional[_Iterable[_Union[NodeInfo, _Mapping]]] = ..., topics: _Optional[int] = ..., partitions: _Optional[int] = ..., feature_level: _Optional[int] = ..., version: _Optional[str] = ..., catalog_in_sync: _Optional[_Union[Nodes, _Mapping]] = ...) -> None: ...

class DrainNodeRequest(_message.Message):
    __slots__ = ("node", "undo")
    NODE_FIELD_NUMBER: _ClassVar[int]
    UNDO_FIELD_NUMBER: _ClassVar[int]
    node: int
    undo: bool
    def __init__(self, node: _Optional[int] = ..., undo: _Optional[bool] = ...) -> None: ...

class DrainNodeResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RemoveNodeRequest(_message.Message):
    __slots__ = ("node",)
    NODE_FIELD_NUMBER: _ClassVar[int]
    node: int
    def __init__(self, node: _Optional[int] = ...) -> None: ...

class RemoveNodeResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TransferLeaderRequest(_message.Message):
    __slots__ = ("topic", "partition", "to")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    to: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., to: _Optional[int] = ...) -> None: ...

class TransferLeaderResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RaiseLevelRequest(_message.Message):
    __slots__ = ("level",)
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    level: int
    def __init__(self, level: _Optional[int] = ...) -> None: ...

class RaiseLevelResponse(_message.Message):
    __slots__ = ("level",)
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    level: int
    def __init__(self, level: _Optional[int] = ...) -> None: ...
