"""The MuJoCo model of an object, as text."""

from collections.abc import Iterator, Sequence

from urlab.evaluation.tasks.object_spec import COLORS, ObjectSpec
from urlab.evaluation.tasks.parts import Joint, Link, Part


def object_mjcf(spec: ObjectSpec) -> str:
    """A model whose one top body is called after the object; its origin is the object's.

    A free object has a free joint, ``free``. A fixed one is a mocap body, so that a layout can put it anywhere without
    another model. Joints have their short names; base and moving links do not collide with each other.
    """
    return "\n".join(_lines(spec)) + "\n"


def _lines(spec: ObjectSpec) -> Iterator[str]:
    yield f'<mujoco model="{spec.name}">'
    yield '  <compiler angle="radian"/>'
    yield f"  <default>{_contact_default(spec)}</default>"
    yield "  <worldbody>"
    yield f'    <body name="{spec.name}"{_mocap(spec)}>'
    if not spec.fixed:
        yield '      <freejoint name="free"/>'
    yield from (f"      {line}" for line in _geoms(spec, spec.links[0]))
    for link in spec.links[1:]:
        yield from (f"      {line}" for line in _moving(spec, link))
    yield "    </body>"
    yield "  </worldbody>"
    yield from _excludes(spec)
    yield "</mujoco>"


def _mocap(spec: ObjectSpec) -> str:
    return ' mocap="true"' if spec.fixed else ""


def _contact_default(spec: ObjectSpec) -> str:
    """Stiff enough for a grasp at 480 Hz; what is round also resists rolling."""
    friction = f"{spec.friction:g} 0.01 0.0005"
    return f'<geom condim="{spec.shape.condim}" friction="{friction}" solref="0.006 1" solimp="0.95 0.99 0.001 0.5 2"/>'


def _moving(spec: ObjectSpec, link: Link) -> Iterator[str]:
    yield f'<body name="{link.name}">'
    if link.joint is not None:
        yield f"  {_joint(link.joint)}"
    yield from (f"  {line}" for line in _geoms(spec, link))
    yield "</body>"


def _joint(joint: Joint) -> str:
    return (
        f'<joint name="{joint.name}" type="{joint.kind}" axis="{_text(joint.axis)}" pos="{_text(joint.pos)}" '
        f'range="{_text(joint.range)}" limited="true" damping="{joint.damping:g}" '
        f'frictionloss="{joint.frictionloss:g}" armature="0.005"/>'
    )


def _geoms(spec: ObjectSpec, link: Link) -> Iterator[str]:
    """The object's mass is shared out by volume over all its links."""
    volume = sum(part.volume for each in spec.links for part in each.parts)
    for number, part in enumerate(link.parts):
        mass = spec.mass_kg * part.volume / volume
        yield (
            f'<geom name="{link.name}_{number}" type="{part.kind}" size="{_text(part.size)}" pos="{_text(part.pos)}" '
            f'quat="{_text(part.quat_wxyz)}" mass="{mass:.9g}" rgba="{_rgba(spec, part)}"/>'
        )


def _rgba(spec: ObjectSpec, part: Part) -> str:
    return f"{_text([channel * part.shade for channel in COLORS[spec.color]])} 1"


def _excludes(spec: ObjectSpec) -> Iterator[str]:
    if len(spec.links) > 1:
        pairs = (f'<exclude body1="{spec.name}" body2="{link.name}"/>' for link in spec.links[1:])
        yield f"  <contact>{''.join(pairs)}</contact>"


def _text(numbers: Sequence[float]) -> str:
    return " ".join(f"{number:.9g}" for number in numbers)
