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

class Placement(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PLACEMENT_UNSPECIFIED: _ClassVar[Placement]
    PLACEMENT_SPREAD: _ClassVar[Placement]
    PLACEMENT_HOMED: _ClassVar[Placement]

class KeyOrder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KEY_ORDER_UNSPECIFIED: _ClassVar[KeyOrder]
    KEY_ORDER_REGION: _ClassVar[KeyOrder]
    KEY_ORDER_GLOBAL: _ClassVar[KeyOrder]

class HomeLost(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HOME_LOST_UNSPECIFIED: _ClassVar[HomeLost]
    HOME_LOST_NEXT: _ClassVar[HomeLost]
    HOME_LOST_REFUSE: _ClassVar[HomeLost]

class Verb(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERB_UNSPECIFIED: _ClassVar[Verb]
    VERB_ACK: _ClassVar[Verb]
    VERB_NACK: _ClassVar[Verb]
    VERB_RELEASE: _ClassVar[Verb]
    VERB_EXTEND: _ClassVar[Verb]
    VERB_REJECT: _ClassVar[Verb]

class ResourceKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESOURCE_KIND_UNSPECIFIED: _ClassVar[ResourceKind]
    RESOURCE_KIND_TOPIC: _ClassVar[ResourceKind]
    RESOURCE_KIND_GROUP: _ClassVar[ResourceKind]
    RESOURCE_KIND_TRANSACTION: _ClassVar[ResourceKind]
    RESOURCE_KIND_PRODUCER: _ClassVar[ResourceKind]
    RESOURCE_KIND_CLUSTER: _ClassVar[ResourceKind]
    RESOURCE_KIND_USER: _ClassVar[ResourceKind]
    RESOURCE_KIND_ROLE: _ClassVar[ResourceKind]

class Match(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MATCH_UNSPECIFIED: _ClassVar[Match]
    MATCH_EXACT: _ClassVar[Match]
    MATCH_PREFIX: _ClassVar[Match]

class Effect(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EFFECT_UNSPECIFIED: _ClassVar[Effect]
    EFFECT_ALLOW: _ClassVar[Effect]
    EFFECT_DENY: _ClassVar[Effect]

class SubjectKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SUBJECT_KIND_UNSPECIFIED: _ClassVar[SubjectKind]
    SUBJECT_KIND_USER: _ClassVar[SubjectKind]
    SUBJECT_KIND_ROLE: _ClassVar[SubjectKind]

class Proof(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROOF_UNSPECIFIED: _ClassVar[Proof]
    PROOF_NONE: _ClassVar[Proof]
    PROOF_PASSWORD: _ClassVar[Proof]
    PROOF_TOKEN: _ClassVar[Proof]
    PROOF_CERTIFICATE: _ClassVar[Proof]
    PROOF_JWT: _ClassVar[Proof]
    PROOF_NODE: _ClassVar[Proof]

class QuotaSubject(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUOTA_SUBJECT_UNSPECIFIED: _ClassVar[QuotaSubject]
    QUOTA_SUBJECT_USER: _ClassVar[QuotaSubject]
    QUOTA_SUBJECT_ROLE: _ClassVar[QuotaSubject]
    QUOTA_SUBJECT_DEFAULT: _ClassVar[QuotaSubject]
    QUOTA_SUBJECT_TOPIC: _ClassVar[QuotaSubject]

class QuotaKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUOTA_KIND_UNSPECIFIED: _ClassVar[QuotaKind]
    QUOTA_KIND_BYTES_IN: _ClassVar[QuotaKind]
    QUOTA_KIND_BYTES_OUT: _ClassVar[QuotaKind]
    QUOTA_KIND_REQUESTS: _ClassVar[QuotaKind]
    QUOTA_KIND_PUBLISHES: _ClassVar[QuotaKind]
    QUOTA_KIND_CONNECTIONS: _ClassVar[QuotaKind]
    QUOTA_KIND_STORED_BYTES: _ClassVar[QuotaKind]
    QUOTA_KIND_TOPICS: _ClassVar[QuotaKind]
    QUOTA_KIND_PARTITIONS: _ClassVar[QuotaKind]
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
PLACEMENT_UNSPECIFIED: Placement
PLACEMENT_SPREAD: Placement
PLACEMENT_HOMED: Placement
KEY_ORDER_UNSPECIFIED: KeyOrder
KEY_ORDER_REGION: KeyOrder
KEY_ORDER_GLOBAL: KeyOrder
HOME_LOST_UNSPECIFIED: HomeLost
HOME_LOST_NEXT: HomeLost
HOME_LOST_REFUSE: HomeLost
VERB_UNSPECIFIED: Verb
VERB_ACK: Verb
VERB_NACK: Verb
VERB_RELEASE: Verb
VERB_EXTEND: Verb
VERB_REJECT: Verb
RESOURCE_KIND_UNSPECIFIED: ResourceKind
RESOURCE_KIND_TOPIC: ResourceKind
RESOURCE_KIND_GROUP: ResourceKind
RESOURCE_KIND_TRANSACTION: ResourceKind
RESOURCE_KIND_PRODUCER: ResourceKind
RESOURCE_KIND_CLUSTER: ResourceKind
RESOURCE_KIND_USER: ResourceKind
RESOURCE_KIND_ROLE: ResourceKind
MATCH_UNSPECIFIED: Match
MATCH_EXACT: Match
MATCH_PREFIX: Match
EFFECT_UNSPECIFIED: Effect
EFFECT_ALLOW: Effect
EFFECT_DENY: Effect
SUBJECT_KIND_UNSPECIFIED: SubjectKind
SUBJECT_KIND_USER: SubjectKind
SUBJECT_KIND_ROLE: SubjectKind
PROOF_UNSPECIFIED: Proof
PROOF_NONE: Proof
PROOF_PASSWORD: Proof
PROOF_TOKEN: Proof
PROOF_CERTIFICATE: Proof
PROOF_JWT: Proof
PROOF_NODE: Proof
QUOTA_SUBJECT_UNSPECIFIED: QuotaSubject
QUOTA_SUBJECT_USER: QuotaSubject
QUOTA_SUBJECT_ROLE: QuotaSubject
QUOTA_SUBJECT_DEFAULT: QuotaSubject
QUOTA_SUBJECT_TOPIC: QuotaSubject
QUOTA_KIND_UNSPECIFIED: QuotaKind
QUOTA_KIND_BYTES_IN: QuotaKind
QUOTA_KIND_BYTES_OUT: QuotaKind
QUOTA_KIND_REQUESTS: QuotaKind
QUOTA_KIND_PUBLISHES: QuotaKind
QUOTA_KIND_CONNECTIONS: QuotaKind
QUOTA_KIND_STORED_BYTES: QuotaKind
QUOTA_KIND_TOPICS: QuotaKind
QUOTA_KIND_PARTITIONS: QuotaKind

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
    __slots__ = ("code", "message", "retriable", "retry_after_ms")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRIABLE_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    retriable: bool
    retry_after_ms: int
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., retriable: _Optional[bool] = ..., retry_after_ms: _Optional[int] = ...) -> None: ...

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
    __slots__ = ("topic", "partition", "start", "layout", "max_staleness_ms", "at_least")
    class AtLeastEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    MAX_STALENESS_MS_FIELD_NUMBER: _ClassVar[int]
    AT_LEAST_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    start: Start
    layout: int
    max_staleness_ms: int
    at_least: _containers.ScalarMap[int, int]
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., start: _Optional[_Union[Start, _Mapping]] = ..., layout: _Optional[int] = ..., max_staleness_ms: _Optional[int] = ..., at_least: _Optional[_Mapping[int, int]] = ...) -> None: ...

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
    __slots__ = ("topic", "partition", "live", "records", "batches", "from_offset", "expired", "joined", "answered", "ranges", "attempt", "lease_ms", "generation", "fenced", "node", "region", "staleness_ms")
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
    FENCED_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    STALENESS_MS_FIELD_NUMBER: _ClassVar[int]
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
    fenced: bool
    node: int
    region: str
    staleness_ms: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., live: _Optional[bool] = ..., records: _Optional[_Iterable[_Union[Record, _Mapping]]] = ..., batches: _Optional[bytes] = ..., from_offset: _Optional[int] = ..., expired: _Optional[_Iterable[int]] = ..., joined: _Optional[_Union[SubscribeResponse.Joined, _Mapping]] = ..., answered: _Optional[_Union[SubscribeResponse.Answered, _Mapping]] = ..., ranges: _Optional[_Iterable[int]] = ..., attempt: _Optional[int] = ..., lease_ms: _Optional[int] = ..., generation: _Optional[int] = ..., fenced: _Optional[bool] = ..., node: _Optional[int] = ..., region: _Optional[str] = ..., staleness_ms: _Optional[int] = ...) -> None: ...

class FetchRequest(_message.Message):
    __slots__ = ("topic", "partition", "offset", "bytes_max", "wait_ms", "fresh", "format", "layout", "at_least", "max_staleness_ms")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    FRESH_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    AT_LEAST_FIELD_NUMBER: _ClassVar[int]
    MAX_STALENESS_MS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    offset: int
    bytes_max: int
    wait_ms: int
    fresh: bool
    format: Format
    layout: int
    at_least: int
    max_staleness_ms: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., bytes_max: _Optional[int] = ..., wait_ms: _Optional[int] = ..., fresh: _Optional[bool] = ..., format: _Optional[_Union[Format, str]] = ..., layout: _Optional[int] = ..., at_least: _Optional[int] = ..., max_staleness_ms: _Optional[int] = ...) -> None: ...

class FetchResponse(_message.Message):
    __slots__ = ("start_offset", "end_offset", "next_offset", "records", "batches", "expired", "node", "region", "staleness_ms")
    START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    STALENESS_MS_FIELD_NUMBER: _ClassVar[int]
    start_offset: int
    end_offset: int
    next_offset: int
    records: _containers.RepeatedCompositeFieldContainer[Record]
    batches: bytes
    expired: _containers.RepeatedScalarFieldContainer[int]
    node: int
    region: str
    staleness_ms: int
    def __init__(self, start_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., next_offset: _Optional[int] = ..., records: _Optional[_Iterable[_Union[Record, _Mapping]]] = ..., batches: _Optional[bytes] = ..., expired: _Optional[_Iterable[int]] = ..., node: _Optional[int] = ..., region: _Optional[str] = ..., staleness_ms: _Optional[int] = ...) -> None: ...

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
    __slots__ = ("topic", "partition", "floor", "start_offset", "end_offset", "acked_above", "pending", "retrying", "lag", "lag_ms", "is_behind", "owner", "waits_for", "waits_until_us")
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
    WAITS_FOR_FIELD_NUMBER: _ClassVar[int]
    WAITS_UNTIL_US_FIELD_NUMBER: _ClassVar[int]
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
    waits_for: str
    waits_until_us: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., floor: _Optional[int] = ..., start_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., acked_above: _Optional[int] = ..., pending: _Optional[int] = ..., retrying: _Optional[int] = ..., lag: _Optional[int] = ..., lag_ms: _Optional[int] = ..., is_behind: _Optional[bool] = ..., owner: _Optional[str] = ..., waits_for: _Optional[str] = ..., waits_until_us: _Optional[int] = ...) -> None: ...

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
    __slots__ = ("replication", "mode", "retention_ms", "retention_bytes", "batch_bytes_max", "expiry_ms", "retention_groups", "compact", "tombstone_ms", "dirty_percent", "placement", "regions", "readers", "key_order", "home_lost", "leaders_follow", "witness")
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
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    REGIONS_FIELD_NUMBER: _ClassVar[int]
    READERS_FIELD_NUMBER: _ClassVar[int]
    KEY_ORDER_FIELD_NUMBER: _ClassVar[int]
    HOME_LOST_FIELD_NUMBER: _ClassVar[int]
    LEADERS_FOLLOW_FIELD_NUMBER: _ClassVar[int]
    WITNESS_FIELD_NUMBER: _ClassVar[int]
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
    placement: Placement
    regions: _containers.RepeatedScalarFieldContainer[str]
    readers: _containers.RepeatedScalarFieldContainer[str]
    key_order: KeyOrder
    home_lost: HomeLost
    leaders_follow: bool
    witness: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, replication: _Optional[int] = ..., mode: _Optional[_Union[DeliveryMode, str]] = ..., retention_ms: _Optional[int] = ..., retention_bytes: _Optional[int] = ..., batch_bytes_max: _Optional[int] = ..., expiry_ms: _Optional[int] = ..., retention_groups: _Optional[bool] = ..., compact: _Optional[bool] = ..., tombstone_ms: _Optional[int] = ..., dirty_percent: _Optional[int] = ..., placement: _Optional[_Union[Placement, str]] = ..., regions: _Optional[_Iterable[str]] = ..., readers: _Optional[_Iterable[str]] = ..., key_order: _Optional[_Union[KeyOrder, str]] = ..., home_lost: _Optional[_Union[HomeLost, str]] = ..., leaders_follow: _Optional[bool] = ..., witness: _Optional[_Iterable[str]] = ...) -> None: ...

class PartitionInfo(_message.Message):
    __slots__ = ("number", "replicas", "leader", "start_offset", "end_offset", "in_sync", "handed_on", "trouble", "home", "readers", "fences", "witness")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    IN_SYNC_FIELD_NUMBER: _ClassVar[int]
    HANDED_ON_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    HOME_FIELD_NUMBER: _ClassVar[int]
    READERS_FIELD_NUMBER: _ClassVar[int]
    FENCES_FIELD_NUMBER: _ClassVar[int]
    WITNESS_FIELD_NUMBER: _ClassVar[int]
    number: int
    replicas: _containers.RepeatedScalarFieldContainer[int]
    leader: int
    start_offset: int
    end_offset: int
    in_sync: Nodes
    handed_on: int
    trouble: str
    home: str
    readers: _containers.RepeatedScalarFieldContainer[int]
    fences: _containers.RepeatedScalarFieldContainer[int]
    witness: int
    def __init__(self, number: _Optional[int] = ..., replicas: _Optional[_Iterable[int]] = ..., leader: _Optional[int] = ..., start_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., in_sync: _Optional[_Union[Nodes, _Mapping]] = ..., handed_on: _Optional[int] = ..., trouble: _Optional[str] = ..., home: _Optional[str] = ..., readers: _Optional[_Iterable[int]] = ..., fences: _Optional[_Iterable[int]] = ..., witness: _Optional[int] = ...) -> None: ...

class Nodes(_message.Message):
    __slots__ = ("ids",)
    IDS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, ids: _Optional[_Iterable[int]] = ...) -> None: ...

class TopicInfo(_message.Message):
    __slots__ = ("id", "name", "config", "partitions", "created_at_us", "caution", "layouts", "layout", "begun_us")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_US_FIELD_NUMBER: _ClassVar[int]
    CAUTION_FIELD_NUMBER: _ClassVar[int]
    LAYOUTS_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    BEGUN_US_FIELD_NUMBER: _ClassVar[int]
    id: int
    name: str
    config: TopicConfig
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionInfo]
    created_at_us: int
    caution: str
    layouts: _containers.RepeatedScalarFieldContainer[int]
    layout: int
    begun_us: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, id: _Optional[int] = ..., name: _Optional[str] = ..., config: _Optional[_Union[TopicConfig, _Mapping]] = ..., partitions: _Optional[_Iterable[_Union[PartitionInfo, _Mapping]]] = ..., created_at_us: _Optional[int] = ..., caution: _Optional[str] = ..., layouts: _Optional[_Iterable[int]] = ..., layout: _Optional[int] = ..., begun_us: _Optional[_Iterable[int]] = ...) -> None: ...

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
    __slots__ = ("id", "addresses", "region", "zone", "host", "draining", "alive", "leads", "replicas", "level_max", "unready", "clock_ahead_ms", "clock_agrees", "round_trip_ms")
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
    ROUND_TRIP_MS_FIELD_NUMBER: _ClassVar[int]
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
    round_trip_ms: float
    def __init__(self, id: _Optional[int] = ..., addresses: _Optional[_Mapping[str, str]] = ..., region: _Optional[str] = ..., zone: _Optional[str] = ..., host: _Optional[str] = ..., draining: _Optional[bool] = ..., alive: _Optional[bool] = ..., leads: _Optional[int] = ..., replicas: _Optional[int] = ..., level_max: _Optional[int] = ..., unready: _Optional[_Iterable[str]] = ..., clock_ahead_ms: _Optional[int] = ..., clock_agrees: _Optional[bool] = ..., round_trip_ms: _Optional[float] = ...) -> None: ...

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

class MoveInfo(_message.Message):
    __slots__ = ("topic", "partition", "replicas", "target", "is_under_way", "stored_bytes", "copied_bytes")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    IS_UNDER_WAY_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    COPIED_BYTES_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    replicas: _containers.RepeatedScalarFieldContainer[int]
    target: _containers.RepeatedScalarFieldContainer[int]
    is_under_way: bool
    stored_bytes: int
    copied_bytes: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., replicas: _Optional[_Iterable[int]] = ..., target: _Optional[_Iterable[int]] = ..., is_under_way: _Optional[bool] = ..., stored_bytes: _Optional[int] = ..., copied_bytes: _Optional[int] = ...) -> None: ...

class BalanceInfo(_message.Message):
    __slots__ = ("is_running", "begun_at_us", "bytes_per_s", "is_automatic", "moves", "moves_left", "bytes_left", "time_left_ms", "waits_for", "is_due", "is_by_itself")
    IS_RUNNING_FIELD_NUMBER: _ClassVar[int]
    BEGUN_AT_US_FIELD_NUMBER: _ClassVar[int]
    BYTES_PER_S_FIELD_NUMBER: _ClassVar[int]
    IS_AUTOMATIC_FIELD_NUMBER: _ClassVar[int]
    MOVES_FIELD_NUMBER: _ClassVar[int]
    MOVES_LEFT_FIELD_NUMBER: _ClassVar[int]
    BYTES_LEFT_FIELD_NUMBER: _ClassVar[int]
    TIME_LEFT_MS_FIELD_NUMBER: _ClassVar[int]
    WAITS_FOR_FIELD_NUMBER: _ClassVar[int]
    IS_DUE_FIELD_NUMBER: _ClassVar[int]
    IS_BY_ITSELF_FIELD_NUMBER: _ClassVar[int]
    is_running: bool
    begun_at_us: int
    bytes_per_s: int
    is_automatic: bool
    moves: _containers.RepeatedCompositeFieldContainer[MoveInfo]
    moves_left: int
    bytes_left: int
    time_left_ms: int
    waits_for: str
    is_due: bool
    is_by_itself: bool
    def __init__(self, is_running: _Optional[bool] = ..., begun_at_us: _Optional[int] = ..., bytes_per_s: _Optional[int] = ..., is_automatic: _Optional[bool] = ..., moves: _Optional[_Iterable[_Union[MoveInfo, _Mapping]]] = ..., moves_left: _Optional[int] = ..., bytes_left: _Optional[int] = ..., time_left_ms: _Optional[int] = ..., waits_for: _Optional[str] = ..., is_due: _Optional[bool] = ..., is_by_itself: _Optional[bool] = ...) -> None: ...

class DescribeBalanceRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeBalanceResponse(_message.Message):
    __slots__ = ("balance",)
    BALANCE_FIELD_NUMBER: _ClassVar[int]
    balance: BalanceInfo
    def __init__(self, balance: _Optional[_Union[BalanceInfo, _Mapping]] = ...) -> None: ...

class RebalanceRequest(_message.Message):
    __slots__ = ("bytes_per_s",)
    BYTES_PER_S_FIELD_NUMBER: _ClassVar[int]
    bytes_per_s: int
    def __init__(self, bytes_per_s: _Optional[int] = ...) -> None: ...

class RebalanceResponse(_message.Message):
    __slots__ = ("balance",)
    BALANCE_FIELD_NUMBER: _ClassVar[int]
    balance: BalanceInfo
    def __init__(self, balance: _Optional[_Union[BalanceInfo, _Mapping]] = ...) -> None: ...

class CancelRebalanceRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CancelRebalanceResponse(_message.Message):
    __slots__ = ("balance",)
    BALANCE_FIELD_NUMBER: _ClassVar[int]
    balance: BalanceInfo
    def __init__(self, balance: _Optional[_Union[BalanceInfo, _Mapping]] = ...) -> None: ...

class SetAutoBalanceRequest(_message.Message):
    __slots__ = ("automatic",)
    AUTOMATIC_FIELD_NUMBER: _ClassVar[int]
    automatic: bool
    def __init__(self, automatic: _Optional[bool] = ...) -> None: ...

class SetAutoBalanceResponse(_message.Message):
    __slots__ = ("balance",)
    BALANCE_FIELD_NUMBER: _ClassVar[int]
    balance: BalanceInfo
    def __init__(self, balance: _Optional[_Union[BalanceInfo, _Mapping]] = ...) -> None: ...

class NodeState(_message.Message):
    __slots__ = ("node", "alive", "version", "level_max", "started_at_us", "certificate_days", "disk_free_bytes", "leads_catalog")
    NODE_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LEVEL_MAX_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_US_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_DAYS_FIELD_NUMBER: _ClassVar[int]
    DISK_FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    LEADS_CATALOG_FIELD_NUMBER: _ClassVar[int]
    node: int
    alive: bool
    version: str
    level_max: int
    started_at_us: int
    certificate_days: float
    disk_free_bytes: int
    leads_catalog: bool
    def __init__(self, node: _Optional[int] = ..., alive: _Optional[bool] = ..., version: _Optional[str] = ..., level_max: _Optional[int] = ..., started_at_us: _Optional[int] = ..., certificate_days: _Optional[float] = ..., disk_free_bytes: _Optional[int] = ..., leads_catalog: _Optional[bool] = ...) -> None: ...

class DescribeUpgradeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeUpgradeResponse(_message.Message):
    __slots__ = ("hindrances", "remarks", "next_node", "nodes", "level", "level_possible")
    HINDRANCES_FIELD_NUMBER: _ClassVar[int]
    REMARKS_FIELD_NUMBER: _ClassVar[int]
    NEXT_NODE_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    LEVEL_POSSIBLE_FIELD_NUMBER: _ClassVar[int]
    hindrances: _containers.RepeatedScalarFieldContainer[str]
    remarks: _containers.RepeatedScalarFieldContainer[str]
    next_node: int
    nodes: _containers.RepeatedCompositeFieldContainer[NodeState]
    level: int
    level_possible: int
    def __init__(self, hindrances: _Optional[_Iterable[str]] = ..., remarks: _Optional[_Iterable[str]] = ..., next_node: _Optional[int] = ..., nodes: _Optional[_Iterable[_Union[NodeState, _Mapping]]] = ..., level: _Optional[int] = ..., level_possible: _Optional[int] = ...) -> None: ...

class LostReplica(_message.Message):
    __slots__ = ("node", "address", "silent_ms")
    NODE_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    SILENT_MS_FIELD_NUMBER: _ClassVar[int]
    node: int
    address: str
    silent_ms: int
    def __init__(self, node: _Optional[int] = ..., address: _Optional[str] = ..., silent_ms: _Optional[int] = ...) -> None: ...

class LeftReplica(_message.Message):
    __slots__ = ("node", "last_term", "last_index", "halted")
    NODE_FIELD_NUMBER: _ClassVar[int]
    LAST_TERM_FIELD_NUMBER: _ClassVar[int]
    LAST_INDEX_FIELD_NUMBER: _ClassVar[int]
    HALTED_FIELD_NUMBER: _ClassVar[int]
    node: int
    last_term: int
    last_index: int
    halted: str
    def __init__(self, node: _Optional[int] = ..., last_term: _Optional[int] = ..., last_index: _Optional[int] = ..., halted: _Optional[str] = ...) -> None: ...

class GroupLeft(_message.Message):
    __slots__ = ("name", "position")
    NAME_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    name: str
    position: int
    def __init__(self, name: _Optional[str] = ..., position: _Optional[int] = ...) -> None: ...

class RecoveryInfo(_message.Message):
    __slots__ = ("topic", "partition", "source", "last_term", "last_index", "commit", "end_offset", "behind", "lost", "left", "groups", "may_lose", "objection", "code", "is_done")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    LAST_TERM_FIELD_NUMBER: _ClassVar[int]
    LAST_INDEX_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    BEHIND_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    MAY_LOSE_FIELD_NUMBER: _ClassVar[int]
    OBJECTION_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    IS_DONE_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    source: int
    last_term: int
    last_index: int
    commit: int
    end_offset: int
    behind: int
    lost: _containers.RepeatedCompositeFieldContainer[LostReplica]
    left: _containers.RepeatedCompositeFieldContainer[LeftReplica]
    groups: _containers.RepeatedCompositeFieldContainer[GroupLeft]
    may_lose: _containers.RepeatedScalarFieldContainer[str]
    objection: str
    code: str
    is_done: bool
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., source: _Optional[int] = ..., last_term: _Optional[int] = ..., last_index: _Optional[int] = ..., commit: _Optional[int] = ..., end_offset: _Optional[int] = ..., behind: _Optional[int] = ..., lost: _Optional[_Iterable[_Union[LostReplica, _Mapping]]] = ..., left: _Optional[_Iterable[_Union[LeftReplica, _Mapping]]] = ..., groups: _Optional[_Iterable[_Union[GroupLeft, _Mapping]]] = ..., may_lose: _Optional[_Iterable[str]] = ..., objection: _Optional[str] = ..., code: _Optional[str] = ..., is_done: _Optional[bool] = ...) -> None: ...

class DescribeRecoveryRequest(_message.Message):
    __slots__ = ("topic", "partition")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ...) -> None: ...

class DescribeRecoveryResponse(_message.Message):
    __slots__ = ("recovery",)
    RECOVERY_FIELD_NUMBER: _ClassVar[int]
    recovery: RecoveryInfo
    def __init__(self, recovery: _Optional[_Union[RecoveryInfo, _Mapping]] = ...) -> None: ...

class RecoverPartitionRequest(_message.Message):
    __slots__ = ("topic", "partition", "code")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    code: str
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., code: _Optional[str] = ...) -> None: ...

class RecoverPartitionResponse(_message.Message):
    __slots__ = ("recovery",)
    RECOVERY_FIELD_NUMBER: _ClassVar[int]
    recovery: RecoveryInfo
    def __init__(self, recovery: _Optional[_Union[RecoveryInfo, _Mapping]] = ...) -> None: ...

class Grant(_message.Message):
    __slots__ = ("actions", "kind", "name", "match", "effect")
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    MATCH_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    actions: _containers.RepeatedScalarFieldContainer[str]
    kind: ResourceKind
    name: str
    match: Match
    effect: Effect
    def __init__(self, actions: _Optional[_Iterable[str]] = ..., kind: _Optional[_Union[ResourceKind, str]] = ..., name: _Optional[str] = ..., match: _Optional[_Union[Match, str]] = ..., effect: _Optional[_Union[Effect, str]] = ...) -> None: ...

class Grants(_message.Message):
    __slots__ = ("grants",)
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    grants: _containers.RepeatedCompositeFieldContainer[Grant]
    def __init__(self, grants: _Optional[_Iterable[_Union[Grant, _Mapping]]] = ...) -> None: ...

class GrantInfo(_message.Message):
    __slots__ = ("id", "subject_kind", "subject", "grant")
    ID_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_KIND_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    GRANT_FIELD_NUMBER: _ClassVar[int]
    id: int
    subject_kind: SubjectKind
    subject: str
    grant: Grant
    def __init__(self, id: _Optional[int] = ..., subject_kind: _Optional[_Union[SubjectKind, str]] = ..., subject: _Optional[str] = ..., grant: _Optional[_Union[Grant, _Mapping]] = ...) -> None: ...

class Roles(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class WhoamiRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WhoamiResponse(_message.Message):
    __slots__ = ("principal", "roles", "authentication")
    class Principal(_message.Message):
        __slots__ = ("name", "roles", "proof", "until_us", "token", "since_us", "key")
        NAME_FIELD_NUMBER: _ClassVar[int]
        ROLES_FIELD_NUMBER: _ClassVar[int]
        PROOF_FIELD_NUMBER: _ClassVar[int]
        UNTIL_US_FIELD_NUMBER: _ClassVar[int]
        TOKEN_FIELD_NUMBER: _ClassVar[int]
        SINCE_US_FIELD_NUMBER: _ClassVar[int]
        KEY_FIELD_NUMBER: _ClassVar[int]
        name: str
        roles: _containers.RepeatedScalarFieldContainer[str]
        proof: Proof
        until_us: int
        token: str
        since_us: int
        key: str
        def __init__(self, name: _Optional[str] = ..., roles: _Optional[_Iterable[str]] = ..., proof: _Optional[_Union[Proof, str]] = ..., until_us: _Optional[int] = ..., token: _Optional[str] = ..., since_us: _Optional[int] = ..., key: _Optional[str] = ...) -> None: ...
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    AUTHENTICATION_FIELD_NUMBER: _ClassVar[int]
    principal: WhoamiResponse.Principal
    roles: _containers.RepeatedScalarFieldContainer[str]
    authentication: str
    def __init__(self, principal: _Optional[_Union[WhoamiResponse.Principal, _Mapping]] = ..., roles: _Optional[_Iterable[str]] = ..., authentication: _Optional[str] = ...) -> None: ...

class CanRequest(_message.Message):
    __slots__ = ("user", "action", "kind", "name")
    USER_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    user: str
    action: str
    kind: ResourceKind
    name: str
    def __init__(self, user: _Optional[str] = ..., action: _Optional[str] = ..., kind: _Optional[_Union[ResourceKind, str]] = ..., name: _Optional[str] = ...) -> None: ...

class CanResponse(_message.Message):
    __slots__ = ("is_allowed", "why", "grant", "role")
    IS_ALLOWED_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    GRANT_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    is_allowed: bool
    why: str
    grant: Grant
    role: str
    def __init__(self, is_allowed: _Optional[bool] = ..., why: _Optional[str] = ..., grant: _Optional[_Union[Grant, _Mapping]] = ..., role: _Optional[str] = ...) -> None: ...

class UserInfo(_message.Message):
    __slots__ = ("name", "roles", "is_locked", "has_password", "created_at_us", "tokens")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    IS_LOCKED_FIELD_NUMBER: _ClassVar[int]
    HAS_PASSWORD_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_US_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    name: str
    roles: _containers.RepeatedScalarFieldContainer[str]
    is_locked: bool
    has_password: bool
    created_at_us: int
    tokens: int
    def __init__(self, name: _Optional[str] = ..., roles: _Optional[_Iterable[str]] = ..., is_locked: _Optional[bool] = ..., has_password: _Optional[bool] = ..., created_at_us: _Optional[int] = ..., tokens: _Optional[int] = ...) -> None: ...

class CreateUserRequest(_message.Message):
    __slots__ = ("name", "password", "roles")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PASSWORD_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    name: str
    password: str
    roles: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., password: _Optional[str] = ..., roles: _Optional[_Iterable[str]] = ...) -> None: ...

class CreateUserResponse(_message.Message):
    __slots__ = ("user",)
    USER_FIELD_NUMBER: _ClassVar[int]
    user: UserInfo
    def __init__(self, user: _Optional[_Union[UserInfo, _Mapping]] = ...) -> None: ...

class AlterUserRequest(_message.Message):
    __slots__ = ("name", "password", "roles", "is_locked")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PASSWORD_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    IS_LOCKED_FIELD_NUMBER: _ClassVar[int]
    name: str
    password: str
    roles: Roles
    is_locked: bool
    def __init__(self, name: _Optional[str] = ..., password: _Optional[str] = ..., roles: _Optional[_Union[Roles, _Mapping]] = ..., is_locked: _Optional[bool] = ...) -> None: ...

class AlterUserResponse(_message.Message):
    __slots__ = ("user",)
    USER_FIELD_NUMBER: _ClassVar[int]
    user: UserInfo
    def __init__(self, user: _Optional[_Union[UserInfo, _Mapping]] = ...) -> None: ...

class DeleteUserRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DeleteUserResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeUserRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DescribeUserResponse(_message.Message):
    __slots__ = ("user",)
    USER_FIELD_NUMBER: _ClassVar[int]
    user: UserInfo
    def __init__(self, user: _Optional[_Union[UserInfo, _Mapping]] = ...) -> None: ...

class ListUsersRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListUsersResponse(_message.Message):
    __slots__ = ("users",)
    USERS_FIELD_NUMBER: _ClassVar[int]
    users: _containers.RepeatedCompositeFieldContainer[UserInfo]
    def __init__(self, users: _Optional[_Iterable[_Union[UserInfo, _Mapping]]] = ...) -> None: ...

class RoleInfo(_message.Message):
    __slots__ = ("name", "about", "is_built_in", "grants")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    IS_BUILT_IN_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    about: str
    is_built_in: bool
    grants: _containers.RepeatedCompositeFieldContainer[GrantInfo]
    def __init__(self, name: _Optional[str] = ..., about: _Optional[str] = ..., is_built_in: _Optional[bool] = ..., grants: _Optional[_Iterable[_Union[GrantInfo, _Mapping]]] = ...) -> None: ...

class CreateRoleRequest(_message.Message):
    __slots__ = ("name", "about")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    name: str
    about: str
    def __init__(self, name: _Optional[str] = ..., about: _Optional[str] = ...) -> None: ...

class CreateRoleResponse(_message.Message):
    __slots__ = ("role",)
    ROLE_FIELD_NUMBER: _ClassVar[int]
    role: RoleInfo
    def __init__(self, role: _Optional[_Union[RoleInfo, _Mapping]] = ...) -> None: ...

class DeleteRoleRequest(_message.Message):
    __slots__ = ("name", "force")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    force: bool
    def __init__(self, name: _Optional[str] = ..., force: _Optional[bool] = ...) -> None: ...

class DeleteRoleResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListRolesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListRolesResponse(_message.Message):
    __slots__ = ("roles",)
    ROLES_FIELD_NUMBER: _ClassVar[int]
    roles: _containers.RepeatedCompositeFieldContainer[RoleInfo]
    def __init__(self, roles: _Optional[_Iterable[_Union[RoleInfo, _Mapping]]] = ...) -> None: ...

class CreateGrantRequest(_message.Message):
    __slots__ = ("subject_kind", "subject", "grant")
    SUBJECT_KIND_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    GRANT_FIELD_NUMBER: _ClassVar[int]
    subject_kind: SubjectKind
    subject: str
    grant: Grant
    def __init__(self, subject_kind: _Optional[_Union[SubjectKind, str]] = ..., subject: _Optional[str] = ..., grant: _Optional[_Union[Grant, _Mapping]] = ...) -> None: ...

class CreateGrantResponse(_message.Message):
    __slots__ = ("grant",)
    GRANT_FIELD_NUMBER: _ClassVar[int]
    grant: GrantInfo
    def __init__(self, grant: _Optional[_Union[GrantInfo, _Mapping]] = ...) -> None: ...

class DeleteGrantRequest(_message.Message):
    __slots__ = ("grant",)
    GRANT_FIELD_NUMBER: _ClassVar[int]
    grant: int
    def __init__(self, grant: _Optional[int] = ...) -> None: ...

class DeleteGrantResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListGrantsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListGrantsResponse(_message.Message):
    __slots__ = ("grants",)
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    grants: _containers.RepeatedCompositeFieldContainer[GrantInfo]
    def __init__(self, grants: _Optional[_Iterable[_Union[GrantInfo, _Mapping]]] = ...) -> None: ...

class TokenInfo(_message.Message):
    __slots__ = ("owner", "name", "created_at_us", "until_us", "grants")
    OWNER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_US_FIELD_NUMBER: _ClassVar[int]
    UNTIL_US_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    owner: str
    name: str
    created_at_us: int
    until_us: int
    grants: Grants
    def __init__(self, owner: _Optional[str] = ..., name: _Optional[str] = ..., created_at_us: _Optional[int] = ..., until_us: _Optional[int] = ..., grants: _Optional[_Union[Grants, _Mapping]] = ...) -> None: ...

class CreateTokenRequest(_message.Message):
    __slots__ = ("owner", "name", "until_us", "grants")
    OWNER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UNTIL_US_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    owner: str
    name: str
    until_us: int
    grants: Grants
    def __init__(self, owner: _Optional[str] = ..., name: _Optional[str] = ..., until_us: _Optional[int] = ..., grants: _Optional[_Union[Grants, _Mapping]] = ...) -> None: ...

class CreateTokenResponse(_message.Message):
    __slots__ = ("info", "secret")
    INFO_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    info: TokenInfo
    secret: str
    def __init__(self, info: _Optional[_Union[TokenInfo, _Mapping]] = ..., secret: _Optional[str] = ...) -> None: ...

class DeleteTokenRequest(_message.Message):
    __slots__ = ("owner", "name")
    OWNER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    owner: str
    name: str
    def __init__(self, owner: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class DeleteTokenResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListTokensRequest(_message.Message):
    __slots__ = ("owner",)
    OWNER_FIELD_NUMBER: _ClassVar[int]
    owner: str
    def __init__(self, owner: _Optional[str] = ...) -> None: ...

class ListTokensResponse(_message.Message):
    __slots__ = ("tokens",)
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    tokens: _containers.RepeatedCompositeFieldContainer[TokenInfo]
    def __init__(self, tokens: _Optional[_Iterable[_Union[TokenInfo, _Mapping]]] = ...) -> None: ...

class QuotaLimit(_message.Message):
    __slots__ = ("kind", "limit")
    KIND_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    kind: QuotaKind
    limit: int
    def __init__(self, kind: _Optional[_Union[QuotaKind, str]] = ..., limit: _Optional[int] = ...) -> None: ...

class CountedLimit(_message.Message):
    __slots__ = ("kind", "limit", "why", "used")
    KIND_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    kind: QuotaKind
    limit: int
    why: str
    used: float
    def __init__(self, kind: _Optional[_Union[QuotaKind, str]] = ..., limit: _Optional[int] = ..., why: _Optional[str] = ..., used: _Optional[float] = ...) -> None: ...

class QuotaInfo(_message.Message):
    __slots__ = ("subject_kind", "subject", "limits", "counts")
    SUBJECT_KIND_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    subject_kind: QuotaSubject
    subject: str
    limits: _containers.RepeatedCompositeFieldContainer[QuotaLimit]
    counts: _containers.RepeatedCompositeFieldContainer[CountedLimit]
    def __init__(self, subject_kind: _Optional[_Union[QuotaSubject, str]] = ..., subject: _Optional[str] = ..., limits: _Optional[_Iterable[_Union[QuotaLimit, _Mapping]]] = ..., counts: _Optional[_Iterable[_Union[CountedLimit, _Mapping]]] = ...) -> None: ...

class SetQuotaRequest(_message.Message):
    __slots__ = ("subject_kind", "subject", "limits", "cleared")
    SUBJECT_KIND_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    CLEARED_FIELD_NUMBER: _ClassVar[int]
    subject_kind: QuotaSubject
    subject: str
    limits: _containers.RepeatedCompositeFieldContainer[QuotaLimit]
    cleared: _containers.RepeatedScalarFieldContainer[QuotaKind]
    def __init__(self, subject_kind: _Optional[_Union[QuotaSubject, str]] = ..., subject: _Optional[str] = ..., limits: _Optional[_Iterable[_Union[QuotaLimit, _Mapping]]] = ..., cleared: _Optional[_Iterable[_Union[QuotaKind, str]]] = ...) -> None: ...

class SetQuotaResponse(_message.Message):
    __slots__ = ("quota",)
    QUOTA_FIELD_NUMBER: _ClassVar[int]
    quota: QuotaInfo
    def __init__(self, quota: _Optional[_Union[QuotaInfo, _Mapping]] = ...) -> None: ...

class DeleteQuotaRequest(_message.Message):
    __slots__ = ("subject_kind", "subject")
    SUBJECT_KIND_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    subject_kind: QuotaSubject
    subject: str
    def __init__(self, subject_kind: _Optional[_Union[QuotaSubject, str]] = ..., subject: _Optional[str] = ...) -> None: ...

class DeleteQuotaResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeQuotaRequest(_message.Message):
    __slots__ = ("subject_kind", "subject")
    SUBJECT_KIND_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    subject_kind: QuotaSubject
    subject: str
    def __init__(self, subject_kind: _Optional[_Union[QuotaSubject, str]] = ..., subject: _Optional[str] = ...) -> None: ...

class DescribeQuotaResponse(_message.Message):
    __slots__ = ("quota",)
    QUOTA_FIELD_NUMBER: _ClassVar[int]
    quota: QuotaInfo
    def __init__(self, quota: _Optional[_Union[QuotaInfo, _Mapping]] = ...) -> None: ...

class ListQuotasRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListQuotasResponse(_message.Message):
    __slots__ = ("quotas",)
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    quotas: _containers.RepeatedCompositeFieldContainer[QuotaInfo]
    def __init__(self, quotas: _Optional[_Iterable[_Union[QuotaInfo, _Mapping]]] = ...) -> None: ...

class JoinTokenInfo(_message.Message):
    __slots__ = ("id", "created_at_us", "until_us", "used_by")
    ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_US_FIELD_NUMBER: _ClassVar[int]
    UNTIL_US_FIELD_NUMBER: _ClassVar[int]
    USED_BY_FIELD_NUMBER: _ClassVar[int]
    id: int
    created_at_us: int
    until_us: int
    used_by: int
    def __init__(self, id: _Optional[int] = ..., created_at_us: _Optional[int] = ..., until_us: _Optional[int] = ..., used_by: _Optional[int] = ...) -> None: ...

class CreateJoinTokenRequest(_message.Message):
    __slots__ = ("until_us",)
    UNTIL_US_FIELD_NUMBER: _ClassVar[int]
    until_us: int
    def __init__(self, until_us: _Optional[int] = ...) -> None: ...

class CreateJoinTokenResponse(_message.Message):
    __slots__ = ("info", "secret")
    INFO_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    info: JoinTokenInfo
    secret: str
    def __init__(self, info: _Optional[_Union[JoinTokenInfo, _Mapping]] = ..., secret: _Optional[str] = ...) -> None: ...

class DeleteJoinTokenRequest(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: int
    def __init__(self, token: _Optional[int] = ...) -> None: ...

class DeleteJoinTokenResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListJoinTokensRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListJoinTokensResponse(_message.Message):
    __slots__ = ("tokens",)
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    tokens: _containers.RepeatedCompositeFieldContainer[JoinTokenInfo]
    def __init__(self, tokens: _Optional[_Iterable[_Union[JoinTokenInfo, _Mapping]]] = ...) -> None: ...
