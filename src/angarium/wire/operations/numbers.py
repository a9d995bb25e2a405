"""Which operation a request or stream is about."""

from __future__ import annotations

from enum import IntEnum


class Operation(IntEnum):
    """What a request or stream is about. Numbers are for ever; 1 is Raft traffic."""

    PUBLISH = 10
    FETCH = 11
    FIND_OFFSET = 12
    OPEN_PRODUCER = 13
    SUBSCRIBE = 14
    RESERVE = 15
    CREATE_TOPIC = 20
    ALTER_TOPIC = 21
    DELETE_TOPIC = 22
    LIST_TOPICS = 23
    DESCRIBE_TOPIC = 24
    CLUSTER_STATUS = 30
    DRAIN_NODE = 31
    REMOVE_NODE = 32
    TRANSFER_LEADER = 33
    RAISE_LEVEL = 34
    JOIN = 40
    PEER = 41
    """Between nodes: segments, repairs (`replica.peers`)."""
    CATALOG = 42
    """Between nodes: a catalog command for its leader."""
    DISPATCH = 43
    """Between nodes: PERFORMANCE batches for subscribers elsewhere."""
    INTERESTS = 44
    """Between nodes: what a node's subscribers want to be handed."""
    ATTACH = 45
    """Between nodes: a member of a group, to the leader of a partition; a stream."""
    GROUP_WISH = 46
    """Between nodes: what is wanted of a group in one partition, to its leader."""
    PARTITIONS = 47
    """Between nodes: what a node's replicas know of their partitions, for one that has none."""
    GROUP_LOOK = 48
    """Between nodes: what a node's replicas know of groups."""
    READINESS = 49
    """Between nodes: why a node should not be relied on, if there is a reason."""
    CONSUME = 50
    SETTLE = 51
    LIST_GROUPS = 52
    DESCRIBE_GROUP = 53
    ALTER_GROUP = 54
    SEEK_GROUP = 55
    PAUSE_GROUP = 56
    DELETE_GROUP = 57
    REPORT_CHECKPOINTS = 58
    OPEN_SERIES = 60
    STAGE = 61
    COMMIT = 62
    ABORT = 63
    FORGET_SERIES = 64
    PUBLISH_SEQUENCED = 65
    LAST_SEQUENCE = 66
    SETTLED_BY = 67
    TRANSACT = 68
    """Between nodes: commands of transactions, to the leader of a group."""
    CLOCK = 69
    """Between nodes: what a node's wall clock says."""
    AUTHENTICATE = 75
    """Prove who one is; the only thing served before that is done, where it has to be."""
    SAME_FOLDER = 70
    """Asked by a node of a process that is said to be the same node: whether it lives on a copy of
    its data folder."""
    DRAINED = 71
    """Between nodes: in which partitions a group has settled all before the fence of a layout."""
    STAGED = 72
    """Between nodes: what is staged in partitions that a node leads, before they get a fence."""
    WHOAMI = 80
    CAN = 81
    CREATE_USER = 82
    ALTER_USER = 83
    DELETE_USER = 84
    DESCRIBE_USER = 85
    LIST_USERS = 86
    CREATE_ROLE = 87
    DELETE_ROLE = 88
    LIST_ROLES = 89
    CREATE_GRANT = 90
    DELETE_GRANT = 91
    LIST_GRANTS = 92
    CREATE_TOKEN = 93
    DELETE_TOKEN = 94
    LIST_TOKENS = 95
    SET_QUOTA = 110
    DELETE_QUOTA = 111
    DESCRIBE_QUOTA = 112
    LIST_QUOTAS = 113
    QUOTA_USE = 114
    """Between nodes: what principals have used of their quotas at a node."""
    CREATE_JOIN_TOKEN = 120
    DELETE_JOIN_TOKEN = 121
    LIST_JOIN_TOKENS = 122
    DESCRIBE_BALANCE = 130
    REBALANCE = 131
    CANCEL_REBALANCE = 132
    SET_AUTO_BALANCE = 133
    READ_POSITIONS = 140
    READ_ACCOUNTS = 141
    RESTORE_TOPIC = 142
    RESTORE_RECORDS = 143
    RESTORE_POSITIONS = 144
    RESTORE_ACCOUNTS = 145
    DESCRIBE_RECOVERY = 150
    RECOVER_PARTITION = 151
    SURVIVOR = 152
    """Between nodes: what a node's replica of a partition is, when others are lost."""
    DESCRIBE_UPGRADE = 153
    OWN_REGISTRATION = 164
    """Between nodes: whether a node has asked for what the catalog is to have of it."""
