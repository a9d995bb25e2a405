"""JSON forms of the contract's values, made from the values themselves.

What can be chosen is read from the settings' declarations (`api.settings`), with their bounds; what
is answered has the fields of the contract's own structs, all of them always there. The OpenAPI
document shows these forms, so a new setting or a new field of an answer is in it by itself.
"""

from __future__ import annotations

from enum import IntEnum
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Meta

from angarium import api
from angarium.api import GroupConfig, TopicConfig, access, balance, quotas, recovery, upgrades
from angarium.api.settings import Setting, settings_of, word_of

Form = type[msgspec.Struct]
C = TypeVar("C", bound=msgspec.Struct)

_FORMS: Final[dict[object, Any]] = {}
"""What a struct looks like, in an answer and as a part of another one."""

_SHOWN: Final[dict[type, tuple[tuple[str, str], ...]]] = {}
"""By struct that has a form: the name of each field there, and the attribute behind it."""


def _settings_form(name: str, config: Form, sentence: str) -> Any:
    """Return the class that reads and shows the settings of a config."""
    settings = settings_of(config)
    fields = [(one.name, _setting_type(one), one.default) for one in settings]
    form = msgspec.defstruct(
        name, fields, frozen=True, forbid_unknown_fields=True, namespace={"__doc__": sentence}
    )
    _FORMS[config] = form
    _SHOWN[config] = tuple((one.name, one.name) for one in settings)
    return form


def answer_form(name: str, source: Form, **renamed: str) -> None:
    """Let a struct be shown with all its fields, under `name` in the OpenAPI document.

    `renamed`: what some fields are called there. Where the struct has a property of that name, it
    is shown instead.
    """
    names = {one: renamed.get(one, one) for one in source.__struct_fields__}
    kinds = get_type_hints(source)
    fields = [(names[one], _json_type(kinds[one])) for one in source.__struct_fields__]
    doc = {"__doc__": source.__doc__}
    _FORMS[source] = msgspec.defstruct(name, fields, frozen=True, namespace=doc)
    _SHOWN[source] = tuple(
        (there, there if hasattr(source, there) else one) for one, there in names.items()
    )


def answer(source: type[C]) -> type[C]:
    """Let a struct be shown under its own name; a decorator."""
    answer_form(source.__name__, source)
    return source


def form_of(kind: Any) -> Any:
    """Return the class that the OpenAPI document shows for an answer."""
    return _FORMS.get(kind, kind)


def in_json(value: Any) -> Any:
    """Return a value as JSON shows it: what has a form in that form, the rest as it is."""
    fields = _SHOWN.get(type(value))
    if fields is not None:
        return {name: in_json(getattr(value, attribute)) for name, attribute in fields}
    if isinstance(value, tuple | list):
        return [in_json(one) for one in value]
    return word_of(value) if isinstance(value, IntEnum) else value


def chosen(kind: type[C], form: msgspec.Struct) -> C:
    """Return the settings that were read; the contract knows the words of its choices."""
    return kind(**msgspec.structs.asdict(form))


def words_pattern(words: type[IntEnum]) -> str:
    """Return the pattern of a choice's words."""
    return f"^({'|'.join(map(word_of, words))})$"


def _setting_type(one: Setting) -> Any:
    kind: Any = one.kind
    if issubclass(kind, IntEnum):
        # As in Python, where the member is called so.
        also = [word.replace("-", "_") for word in one.words if "-" in word]
        kind = Annotated[str, Meta(pattern=f"^({'|'.join((*one.words, *also))})$")]
    elif one.words:
        kind = Literal[one.words]
    elif one.bounds is not None:
        kind = Annotated[int, Meta(ge=one.bounds[0], le=one.bounds[1])]
    if one.is_list:
        kind = tuple[kind, ...]
    meaning = one.about.sentence
    if one.may_be_none:
        kind, meaning = kind | None, f"{meaning} Null: {one.about.none}."
    return Annotated[kind, Meta(description=meaning)]


def _json_type(kind: Any) -> Any:
    if kind in _FORMS:
        return _FORMS[kind]
    inside = get_args(kind)
    if get_origin(kind) is tuple and inside[-1] is ...:
        return list[_json_type(inside[0])]  # type: ignore[misc]
    if isinstance(kind, UnionType) or NoneType in inside:
        (only,) = (one for one in inside if one is not NoneType)
        return _json_type(only) | None
    if isinstance(kind, type) and issubclass(kind, IntEnum):
        return Annotated[str, Meta(pattern=words_pattern(kind))]
    return getattr(kind, "__supertype__", kind)  # offsets and the like are numbers


if TYPE_CHECKING:
    TopicSettings = msgspec.Struct
    GroupSettings = msgspec.Struct
else:
    TopicSettings = _settings_form(
        "TopicSettings",
        TopicConfig,
        'What can be chosen about a topic; null stands for "no limit".',
    )
    GroupSettings = _settings_form(
        "GroupSettings", GroupConfig, "What can be chosen about a group, but for its kind."
    )

answer_form("PartitionOut", api.PartitionInfo)
answer_form("TopicOut", api.TopicInfo, created_at="created_at_us", begun="begun_us")
answer_form("NodeOut", api.NodeInfo)
answer_form("Cluster", api.ClusterStatus)
answer_form("ProducerOut", api.Producer)
answer_form("MemberOut", api.GroupMember)
answer_form("PositionOut", api.GroupPosition, waits_until="waits_until_us")
answer_form("GroupOut", api.GroupInfo, listed_lag="lag")
answer_form("MoveOut", api.Moved)
answer_form("PrincipalOut", access.Principal, until="until_us", since="since_us")
answer_form("CallerOut", access.Caller)
answer_form("GrantOut", access.Grant)
answer_form("DecisionOut", access.Decision)
answer_form("UserOut", access.UserInfo, created_at="created_at_us")
answer_form("GivenGrant", access.GrantInfo)
answer_form("RoleOut", access.RoleInfo)
answer_form("TokenOut", access.TokenInfo, created_at="created_at_us", until="until_us")
answer_form("IssuedTokenOut", access.IssuedToken)
answer_form("JoinTokenOut", access.JoinTokenInfo, created_at="created_at_us", until="until_us")
answer_form("IssuedJoinTokenOut", access.IssuedJoinToken)
answer_form("CountedLimit", quotas.CountedLimit)
answer_form("QuotaOut", quotas.QuotaInfo)
answer_form("PartitionMove", balance.MoveInfo)
answer_form("Balance", balance.BalanceInfo, begun_at="begun_at_us")
answer_form("NodeState", upgrades.NodeState, started_at="started_at_us")
answer_form("Upgrade", upgrades.UpgradeInfo)
answer_form("LostReplica", recovery.LostReplica)
answer_form("LeftReplica", recovery.LeftReplica)
answer_form("GroupLeft", recovery.GroupLeft)
answer_form("Recovery", recovery.RecoveryInfo)
