"""The controller of an articulation: its parameters, checked here and applied by the server."""

import math
from collections.abc import Iterator, Mapping
from copy import deepcopy
from numbers import Real
from typing import TYPE_CHECKING, Any

from urlab_client.enums import ControllerKind
from urlab_client.errors import URLabControllerError, unknown_name
from urlab_client.lookup import FixedAttributes
from urlab_wire.codec import Tree
from urlab_wire.ops.runtime import ConfigureControllerRequest
from urlab_wire.ops.session import ControllerBlock

if TYPE_CHECKING:
    from urlab_client.client import URLabClient

Gains = Mapping[str, float]
"""By joint."""


class URLabController(FixedAttributes):
    """A controller of any kind: its params, checked here and applied by the server. Without a client, changes stay
    local."""

    def __init__(
        self,
        articulation_prefix: str,
        kind: str,
        params: Tree | None = None,
        schema: Tree | None = None,
        *,
        client: "URLabClient | None" = None,
    ) -> None:
        self._articulation_prefix = articulation_prefix
        self._renew(kind, params, schema, client)

    def _renew(self, kind: str, params: Tree | None, schema: Tree | None, client: "URLabClient | None") -> None:
        """Become the controller of a new handshake."""
        self._kind: ControllerKind | str = ControllerKind(kind) if kind in set(ControllerKind) else kind
        self._params: Tree = dict(params or {})
        self._schema: Tree = dict(schema or {})
        self._client = client

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._articulation_prefix!r}, {self._kind!s}, {', '.join(self._params)})"

    @property
    def articulation_prefix(self) -> str:
        """The prefix of the articulation that it controls."""
        return self._articulation_prefix

    @property
    def kind(self) -> ControllerKind | str:
        """What it is: a `ControllerKind`, or the server's word for one that this client does not know."""
        return self._kind

    @property
    def params(self) -> Tree:
        """The params in force as of the last answer of the server, a copy; `configure` changes them."""
        return deepcopy(self._params)

    @property
    def schema(self) -> Tree:
        """What params may be, by name: ``{"type": "per_joint" | "scalar", "min": ..., "max": ...}``; a copy."""
        return deepcopy(self._schema)

    def configure(self, **kwargs: Any) -> Tree:
        """Patch the params named; the rest stays. Returns all params in force.

        Raises `URLabControllerError` (a `URLabRPCError` and a ValueError) when the schema forbids it or a joint is not
        under this controller; then nothing is changed.
        """
        for name, value in kwargs.items():
            self._check(name, value)
        return self._push({name: _plain(value) for name, value in kwargs.items()})

    def refresh(self) -> Tree:
        """Read the params in force from the server; returns them."""
        return self._push({})

    def _push(self, patch: Tree) -> Tree:
        if self._client is None:
            self._merge(patch)
        else:
            request = ConfigureControllerRequest(articulation=self._articulation_prefix, params=patch)
            self._params = self._client._ask(request).params
        return self.params

    def _merge(self, patch: Tree) -> None:
        for name, value in patch.items():
            old = self._params.get(name)
            self._params[name] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value

    def _check(self, name: str, value: Any) -> None:
        if not self._schema:
            return
        rule = self._schema.get(name)
        if rule is None:
            raise self._violation(f"{self._who()}: {unknown_name('param', name, self._schema)}")
        if rule.get("type") != "per_joint":
            self._check_number(name, value, rule)
            return
        if not isinstance(value, Mapping):
            raise self._violation(f"{self._who()}: {name!r} is per joint: give {{joint: number}}, not {value!r}")
        for joint, number in value.items():
            self._check_number(f"{name}[{joint}]", number, rule)

    def _check_number(self, name: str, value: Any, rule: Tree) -> None:
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            raise self._violation(f"{self._who()}: {name} must be a finite number, not {value!r}")
        low, high = rule.get("min", -math.inf), rule.get("max", math.inf)
        if not low <= float(value) <= high:
            raise self._violation(f"{self._who()}: {name} = {value!r} is outside [{low}, {high}]")

    def _violation(self, message: str) -> URLabControllerError:
        return URLabControllerError(message, op="configure_controller")

    def _who(self) -> str:
        return f"controller {self._kind} of {self._articulation_prefix!r}"


class URLabPDController(URLabController):
    """A PD controller. Gains are by joint; joints that a call does not name keep theirs."""

    @property
    def kp(self) -> Gains:
        """Position gains by joint (N m/rad or N/m), a read-only view that follows changes."""
        return GainView(self, "kp")

    @property
    def kv(self) -> Gains:
        """Velocity gains by joint (N m s/rad or N s/m), a read-only view that follows changes."""
        return GainView(self, "kv")

    @property
    def torque_limit(self) -> Gains:
        """Torque limits by joint (N m or N), a read-only view that follows changes."""
        return GainView(self, "torque_limit")

    def set_gains(self, kp: Gains | None = None, kv: Gains | None = None, torque_limit: Gains | None = None) -> Tree:
        """Patch gains of the joints named. Returns all params in force."""
        return self.configure(**_given(kp=kp, kv=kv, torque_limit=torque_limit))

    def set_defaults(self, kp: float | None = None, kv: float | None = None, torque_limit: float | None = None) -> Tree:
        """Set new defaults; the server gives them to every joint. Returns all params in force."""
        return self.configure(**_given(default_kp=kp, default_kv=kv, default_torque_limit=torque_limit))


class GainView(Mapping[str, float]):
    """The gains of one kind, always those that the controller has now."""

    def __init__(self, controller: URLabController, key: str) -> None:
        self._controller = controller
        self._key = key

    def __getitem__(self, joint: str) -> float:
        gains = self._gains()
        if joint not in gains:
            raise unknown_name(f"{self._key} of joint", joint, gains, owner=self._controller.articulation_prefix)
        return float(gains[joint])

    def __iter__(self) -> Iterator[str]:
        return iter(self._gains())

    def __len__(self) -> int:
        return len(self._gains())

    def __repr__(self) -> str:
        return f"{self._key}={dict(self)}"

    def _gains(self) -> Mapping[str, float]:
        gains: Mapping[str, float] = self._controller._params.get(self._key) or {}
        return gains


def make_controller(
    prefix: str,
    block: ControllerBlock | None,
    client: "URLabClient | None",
    known: URLabController | None = None,
) -> URLabController | None:
    """The controller that a handshake block describes, or None without one; the ``known`` one where it fits."""
    if block is None:
        return None
    kind = block.kind or ControllerKind.PD
    cls = URLabPDController if kind == ControllerKind.PD else URLabController
    if known is None or type(known) is not cls:
        return cls(prefix, kind, block.params, block.schema, client=client)
    known._renew(kind, block.params, block.schema, client)
    return known


def _given(**values: Any) -> Tree:
    return {name: value for name, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value
