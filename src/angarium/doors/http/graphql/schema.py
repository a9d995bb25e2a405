"""The schema, as it is published, built once; `derived_types` makes what `api` declares."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from graphql import GraphQLError, GraphQLScalarType, GraphQLSchema, build_schema
from graphql.language import IntValueNode

from angarium import api
from angarium.api import GroupConfig, TopicConfig, access, balance, quotas, recovery, upgrades
from angarium.doors.http.graphql.derived_types import choice_sdl, settings_sdl, value_sdl
from angarium.kinds import GroupKind

_WRITTEN: Final = '''
"A whole number of 64 bits."
scalar Long

"What an acknowledgement means."
enum DeliveryMode {
  "A majority of replicas has fsynced it."
  CONSISTENT
  "The leader has appended it."
  EVENTUAL
  "Handed to the subscribers connected now; stored nowhere."
  PERFORMANCE
}

enum SeekTarget { EARLIEST LATEST OFFSET TIME }

type Query {
  "ok"
  health: String!
  topics: [Topic!]!
  topic(name: String!): Topic
  "Committed records of a partition, from an offset on."
  records(
    topic: String!, partition: Int! = 0, offset: Long! = 0, limit: Int! = 100, waitMs: Int! = 0,
    fresh: Boolean! = false, atLeast: Long, maxStalenessMs: Long
  ): RecordPage!
  groups: [Group!]!
  group(name: String!): Group
  "The cluster, as the answering node sees it."
  status: Cluster!
  "Who asks."
  whoami: Caller!
  "Whether a user may do something, and why; about oneself everybody may ask."
  can(user: String!, action: String!, kind: ResourceKind!, name: String! = ""): Decision!
  users: [User!]!
  user(name: String!): User
  roles: [Role!]!
  grants: [GivenGrant!]!
  "Those of one user, or all."
  tokens(owner: String): [Token!]!
  quotas: [Quota!]!
  "Of a user or topics also what counts, and what is used; about oneself everybody may ask."
  quota(subjectKind: QuotaSubject!, subject: String! = ""): Quota
  "Those that are not forgotten, the oldest first."
  joinTokens: [JoinToken!]!
  "How evening out stands, and what it would move now."
  balance: Balance!
  "Whether a node may be taken down now, and which one."
  upgrade: Upgrade!
  "What `recoverPartition` would do now, what it may lose, and the code to confirm it."
  recovery(topic: String!, partition: Int!): Recovery!
}

type Mutation {
  publish(
    topic: String!, payload: String, payloadBase64: String, key: String, keyBase64: String,
    headers: [HeaderInput!], partition: Int, mode: DeliveryMode
  ): PublishResponse!
  "Records of one partition each are stored in order; all of them, or an error."
  publishBatch(
    topic: String!, payloads: [String!], payloadsBase64: [String!], keys: [String],
    partition: Int, mode: DeliveryMode
  ): PublishResponse!
  createTopic(name: String!, partitions: Int! = 1, config: TopicConfigInput): Topic!
  "Settings are given as a whole: those left out take their defaults."
  alterTopic(name: String!, partitions: Int, config: TopicConfigInput): Topic!
  deleteTopic(name: String!): Boolean!
  alterGroup(name: String!, config: GroupConfigInput!): Group!
  seekGroup(
    name: String!, to: SeekTarget!, value: Long! = 0, topic: String, partition: Int,
    dryRun: Boolean! = false
  ): [Move!]!
  pauseGroup(name: String!, paused: Boolean! = true): Boolean!
  deleteGroup(name: String!, topic: String): Boolean!
  "Without a password it comes in by tokens or certificates alone."
  createUser(name: String!, password: String, roles: [String!]! = []): User!
  "What is left out stays as it is."
  alterUser(name: String!, password: String, roles: [String!], isLocked: Boolean): User!
  deleteUser(name: String!): Boolean!
  createRole(name: String!, about: String! = ""): Role!
  deleteRole(name: String!, force: Boolean! = false): Boolean!
  createGrant(subjectKind: SubjectKind!, subject: String!, grant: GrantInput!): GivenGrant!
  deleteGrant(id: Long!): Boolean!
  "Its secret is told this once."
  createToken(owner: String!, name: String!, untilUs: Long, grants: [GrantInput!]): IssuedToken!
  deleteToken(owner: String!, name: String!): Boolean!
  "What the quota says of anything else stays; of what is cleared it says nothing any more."
  setQuota(
    subjectKind: QuotaSubject!, subject: String! = "", limits: [QuotaLimitInput!]! = [],
    cleared: [QuotaKind!]! = []
  ): Quota!
  deleteQuota(subjectKind: QuotaSubject!, subject: String! = ""): Boolean!
  "It lets one node in, once; without a time it is good for an hour. Its secret is told this once."
  createJoinToken(untilUs: Long): IssuedJoinToken!
  deleteJoinToken(id: Long!): Boolean!
  "Evens out replicas, bytes and leaders; while that is done: at another pace. 0: without a limit."
  rebalance(bytesPerS: Long): Balance!
  "Begins nothing more, and lets what is on its way go back."
  cancelRebalance: Balance!
  "Whether it begins by itself when a node has come, come back or been drained."
  setAutoBalance(automatic: Boolean!): Balance!
  "The last resort: goes on with the best replica that is left, and without all others for ever."
  recoverPartition(topic: String!, partition: Int!, code: String!): Recovery!
}

type Subscription {
  """
  The records of a topic. Group "" is what comes from now on, "__REPLAY__" everything from the
  start; any other takes part in that group, where each record is acknowledged once it was sent.
  """
  subscribe(
    topic: String!, groupId: String = "", maxStalenessMs: Long, atLeast: String
  ): Message!
}

type Message {
  "Topic, partition and offset in one word; a PERFORMANCE record, which has none, has one made up."
  id: ID!
  topic: String!
  "Bytes that are no UTF-8 are replaced; `payloadBase64` has them as they are."
  payload: String!
  "Seconds since 1970: when it was appended, or, of a PERFORMANCE record, handed on."
  timestamp: Int!
  payloadBase64: String!
  key: String
  partition: Int!
  "None for a PERFORMANCE record."
  offset: Long
  headers: [Header!]!
  "Which attempt this is, in a group."
  attempt: Int!
}

type PublishResponse {
  success: Boolean!
  ack: Ack
  acks: [Ack!]!
}

type Ack {
  topic: String!
  partition: Int!
  mode: DeliveryMode!
  offset: Long
  nextOffset: Long
  appendTimeUs: Long
  provisional: Boolean!
  duplicate: Boolean!
  subscribers: Int!
}

type RecordPage {
  records: [Record!]!
  nextOffset: Long!
  startOffset: Long!
  endOffset: Long!
  "Whose replica was read, where that node is, and how old this may be: 0 from the leader."
  node: Int!
  region: String!
  stalenessMs: Long!
}

type Record {
  partition: Int!
  offset: Long!
  "None for a null value; bytes that are no UTF-8 are replaced."
  value: String
  valueBase64: String
  key: String
  keyBase64: String
  headers: [Header!]!
  timestampUs: Long!
  appendTimeUs: Long!
}

type Header { name: String! value: String valueBase64: String }
input HeaderInput { name: String! value: String valueBase64: String }

"Actions are words such as topic.publish, or * alone for all that the kind of resource has."
input GrantInput {
  actions: [String!]!
  kind: ResourceKind!
  name: String! = ""
  match: Match! = PREFIX
  effect: Effect! = ALLOW
}

"The default has no subject."
type Quota {
  subjectKind: QuotaSubject!
  subject: String!
  limits: [QuotaLimit!]!
  "What counts in the end, and how much of it is used; of a list nothing."
  counts: [CountedLimit!]!
}

"-1: there is none, whatever the roles or the default say."
type QuotaLimit { kind: QuotaKind! limit: Long! }
input QuotaLimitInput { kind: QuotaKind! limit: Long! }

'''

_ANSWERED: Final[tuple[type[Any], ...]] = (
    *(api.TopicInfo, api.PartitionInfo, api.GroupInfo, api.GroupMember, api.GroupPosition),
    *(api.Moved, api.ClusterStatus, api.NodeInfo),
    *(access.Principal, access.Caller, access.Grant, access.Decision, access.UserInfo),
    *(access.GrantInfo, access.RoleInfo, access.TokenInfo, access.IssuedToken),
    *(access.JoinTokenInfo, access.IssuedJoinToken, quotas.CountedLimit),
    *(balance.MoveInfo, balance.BalanceInfo, upgrades.NodeState, upgrades.UpgradeInfo),
    *(recovery.LostReplica, recovery.LeftReplica, recovery.GroupLeft, recovery.RecoveryInfo),
)
"""What calls of the contract answer, and the schema shows as it is."""

_CHOICES: Final = (
    *(access.ResourceKind, access.Match, access.Effect),
    *(access.SubjectKind, access.Proof, quotas.QuotaSubject, quotas.QuotaKind),
)

SDL: Final = "\n".join(
    (
        _WRITTEN,
        *map(value_sdl, _ANSWERED),
        *map(choice_sdl, _CHOICES),
        f"enum GroupKind {{ {' '.join(one.name for one in GroupKind)} }}",
        settings_sdl("TopicConfig", TopicConfig, known=_WRITTEN),
        settings_sdl("GroupConfig", GroupConfig, known=_WRITTEN),
    )
)

_LOWEST: Final = -(1 << 63)
_HIGHEST: Final = (1 << 63) - 1


@cache
def schema() -> GraphQLSchema:
    built = build_schema(SDL)
    long = built.type_map["Long"]
    assert isinstance(long, GraphQLScalarType)
    # graphql-core 3.3 asks under other names than 3.2, and copies what the older ones were when
    # the type was made.
    for old, new, function in (
        ("serialize", "coerce_output_value", _long),
        ("parse_value", "coerce_input_value", _long),
        ("parse_literal", "coerce_input_literal", _long_literal),
    ):
        setattr(long, old, function)
        setattr(long, new, function)
    return built


def _long(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not _LOWEST <= value <= _HIGHEST:
        raise GraphQLError(f"Long cannot represent {value!r}.")
    return value


def _long_literal(node: Any, _: Any = None) -> int:
    if not isinstance(node, IntValueNode):
        raise GraphQLError("Long is written as a whole number.", node)
    return _long(int(node.value))
