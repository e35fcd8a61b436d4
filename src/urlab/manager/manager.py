"""The manager: one running scene. It owns no physics of its own; it brings the parts together.

Thread safety: every public method may be called from any thread and takes the physics lock where it needs it.
"""

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from urlab.cameras import Capture
from urlab.compile import CompiledScene
from urlab.config import STEP_TIME_LIMIT_S, RenderProfile
from urlab.control import TwistCommand
from urlab.errors import BadValue, ModeLocked, ReplayRequiresStepped, UnknownArticulation, known
from urlab.manager.articulation import RunningArticulation, go_to_start
from urlab.manager.command import CommandReader
from urlab.manager.edits import joint_write
from urlab.manager.forces import Perturbation, Wrenches, refuse_fixed
from urlab.manager.modes import MODES, SteppingMode
from urlab.manager.observation import Observation, ObservedArrays, Observer, PlainBlocks, View
from urlab.manager.packed import PackedObserver
from urlab.manager.randomising import Randomising
from urlab.manager.record_replay import RecordReplay
from urlab.manager.states import StateCodec, StateSlots
from urlab.paths import FileRoots
from urlab.physics import NO_CALLBACKS, Engine, LoopClock, PhysicsLoop, StepCallbacks
from urlab.physics.queries import ContactNames, compiled_name, find_keyframes
from urlab_wire.enums import ControlSource, ResetScope, StepMode
from urlab_wire.ops.runtime import PerturbRequest
from urlab_wire.ops.stepping import ModelChange, ModelWrites, StepRequest


class StepCounter:
    """Counts mj_steps (pushes in puppet mode) over a server's life; a session sees those since its hello or reset."""

    def __init__(self) -> None:
        self.total = 0
        self.driver_start = 0
        """The total at which the plain session began to count. The state stream counts from there too."""

        self._last_reset = 0

    def restart(self) -> None:
        """A reset, or a new play: every session counts from here."""
        self._last_reset = self.total

    def between(self, start: int, end: int) -> int:
        """Steps from ``start`` or the last reset, whichever is later, to ``end`` (both former totals)."""
        return max(0, end - max(start, self._last_reset))

    def of_driver(self) -> int:
        """Steps as the replies to the plain session count them."""
        return self.between(self.driver_start, self.total)


class SceneNames:
    """Elements of a scene by the names that clients give: compiled, or short where one actor has it. Any thread."""

    def __init__(self, scene: CompiledScene) -> None:
        model = scene.model
        self.bodies: Mapping[str, int] = {model.body(index).name: index for index in range(model.nbody)}
        self.equalities: Mapping[str, int] = {model.equality(index).name: index for index in range(model.neq)}
        self._actors = {one.actor_id: one.prefix for one in scene.articulations if one.actor_id}
        self._prefixes = tuple(one.actor.name for one in scene.placed)

    def body(self, name: str) -> int:
        """The id of a body; UnknownBody lists those that exist."""
        return self.bodies[compiled_name("body", name, self.bodies, self._prefixes)]

    def prefix(self, target: str, *, by_name: bool = False) -> str:
        """The prefix of the articulation whose actor_id this is; any other word stays as it is, as in ``by_name``."""
        return target if by_name else self._actors.get(target, target)

    def equality(self, name: str) -> int:
        """The id of an equality constraint; BadValue lists those that exist."""
        found = compiled_name("equality constraint", name, self.equalities, self._prefixes, BadValue)
        return self.equalities[found]


class Manager:
    """One play of one compiled scene."""

    def __init__(
        self,
        scene: CompiledScene,
        *,
        replays_dir: Path,
        roots: FileRoots,
        counter: StepCounter,
        pinned_mode: StepMode | None = None,
        render_profile: RenderProfile = RenderProfile.AUTO,
        callbacks: StepCallbacks = NO_CALLBACKS,
        journal_dir: Path | None = None,
        level_path: str | None = None,
        randomize: Mapping[str, Any] | None = None,
        clock: LoopClock = time,
    ) -> None:
        """``callbacks`` are functions of plugins, called before and after every sub-step.

        Frames of an unsaved recording are kept below ``journal_dir``, if there is one; recordings name ``level_path``
        as what they are of. ``randomize`` are the level's own entries: BadValue when the scene has not what they name.
        Live mode follows ``clock``.
        """
        self.scene = scene
        self._level_path = level_path
        self.counter = counter
        self.pinned_mode = pinned_mode
        self.seed: int | None = None
        self.engine = Engine(scene.model)
        self.loop = PhysicsLoop(self.engine, self._live_turn, clock)
        self.capture = Capture(scene, lambda: self.engine.snapshot, render_profile)
        self.wrenches = Wrenches(scene.model, self.engine.data)
        self.arrays = ObservedArrays.of(self.engine.data, len(scene.articulations))
        self.articulations = {
            one.prefix: RunningArticulation(
                one, TwistCommand(self.arrays.twist[row], self.arrays.actions[row : row + 1])
            )
            for row, one in enumerate(scene.articulations)
        }
        self.record_replay = RecordReplay(self.engine, scene, replays_dir, roots, self._about_recording, journal_dir)
        self.record_replay.on_jump = self.loop.begin_anew
        self.commands = CommandReader(self.articulations, frozenset(one.name for one in scene.entities), self.body_id)
        self._observer = Observer(scene, self.arrays)
        self.packed = PackedObserver(scene, self.arrays)
        self.names = SceneNames(scene)
        prefixes = tuple(one.actor.name for one in scene.placed)
        self.randomising = Randomising(
            self.engine, prefixes, self.articulations.values(), self.capture.renderer.noise, randomize or {}
        )
        self.states = StateSlots()
        self._state_codec = StateCodec(self.engine, self.articulations.values())
        self.ui_driven: frozenset[str] = frozenset()
        """The articulations that follow the user interface, and not what steps command."""

        self._modes = {name: mode(self) for name, mode in MODES.items()}
        self._mode = self._modes[StepMode.LIVE]
        self.engine.pre_step += [self._before_step, *callbacks.hooks_before(self.engine)]
        self.engine.post_step += [self._after_step, *callbacks.hooks_after(self.engine)]

    # -- lifecycle ----------------------------------------------------------------------------------------------

    def start(self, mode: StepMode) -> None:
        """Begin simulating, unpaused, in a mode, every robot from the keyframe that the level gives it."""
        with self.engine.locked():
            self._go_to_start()
            self.engine.forward()
            self.engine.publish()
        self.loop.start()
        self.capture.start()
        self._enter(self.pinned_mode or mode)

    def stop(self) -> None:
        """End: physics halts, an unsaved recording is kept on disk."""
        self.engine.interrupt()
        self.capture.close()
        self.loop.stop()
        self.record_replay.autosave()
        with self.engine.locked():
            self.engine.close()

    # -- modes --------------------------------------------------------------------------------------------------

    @property
    def mode(self) -> StepMode:
        """The mode in force."""
        return self._mode.name

    def set_mode(self, mode: StepMode) -> StepMode:
        """Switch, auto meaning live; returns the previous mode."""
        self.require_unpinned()
        previous = self._mode.name
        self._enter(mode)
        return previous

    def require_unpinned(self) -> None:
        """ModeLocked when the server was started with one fixed mode."""
        if self.pinned_mode is not None:
            raise ModeLocked(f"the server was started with --step-mode {self.pinned_mode}; it cannot be switched")

    def _enter(self, mode: StepMode) -> None:
        entered: SteppingMode = self._modes[StepMode.LIVE if mode is StepMode.AUTO else mode]
        with self.engine.locked():
            self._mode = entered
            if entered.runs_by_itself:
                self.record_replay.end_replay()
            self.wrenches.end_window()
            for articulation in self.articulations.values():
                articulation.bypass_controller = False
            self.loop.set_running(entered.runs_by_itself)

    # -- stepping -----------------------------------------------------------------------------------------------

    def step(
        self, request: StepRequest, view: View, *, keep_state: bool = False, runs_paused: bool = False
    ) -> Observation:
        """Serve a step in the mode in force, and observe; ``keep_state`` adds a copy of the state.

        With ``runs_paused`` a live scene that is paused runs the steps, as in direct mode.
        """
        deadline = time.monotonic() + STEP_TIME_LIMIT_S
        with self.engine.locked(STEP_TIME_LIMIT_S):
            mode = self._mode
            if runs_paused and mode.runs_by_itself and self.loop.paused and (request.n_steps or 0) > 0:
                mode = self._modes[StepMode.DIRECT]
            mode.step(request, deadline)
            if not mode.runs_by_itself:
                self.engine.publish()
            return self._observe(view, keep_state)

    def read(
        self, view: View, timeout_s: float = STEP_TIME_LIMIT_S, *, keep_state: bool = False
    ) -> Observation:  # fmt: skip
        """Observe, changing nothing; OpTimeout when a step does not give way in time."""
        with self.engine.locked(timeout_s):
            return self._observe(view, keep_state)

    def forward(self, view: View, *, keep_state: bool = False) -> Observation:
        """Run mj_forward and observe."""
        with self.engine.locked():
            self.engine.forward()
            self.engine.publish()
            return self._observe(view, keep_state)

    def reset(
        self,
        view: View,
        *,
        keyframe: str | None = None,
        seed: int | None = None,
        joint_values: Mapping[str, Mapping[str, list[float]]] | None = None,
        scope: ResetScope = ResetScope.ALL,
        randomize: bool | Mapping[str, Any] | None = None,
    ) -> Observation:
        """Back to the level's start or to a keyframe, then joint overrides, then mj_forward. Ends a replay.

        By ``scope`` the time goes on all the same, or it alone goes back. Unless it is the time alone, bodies that are
        held are let go of, and changes of the model until a reset end.

        With a ``seed`` the level's own entries are drawn, or those of ``randomize``; False draws none, and True draws
        without a seed too.
        """
        with self.engine.locked():
            if scope is ResetScope.TIME:
                self.record_replay.end_replay()
                self.engine.data.time = 0.0
                self.engine.jump()
                self.engine.publish()
                return self._observe(view)
            time_s = self.engine.data.time
            keys = find_keyframes(self.engine.model, keyframe, self.articulations) if keyframe else []
            writes = self._joint_writes(joint_values or {})
            plan = self.randomising.plan(seed, randomize)
            changed = self.randomising.apply_model(plan)
            self.record_replay.end_replay()
            self._go_to_start(keys)
            self.randomising.apply_start(plan)
            if scope is ResetScope.STATE:
                self.engine.data.time = time_s
            for where, values in writes:
                self.engine.data.qpos[where] = values
            seed = plan.seed if plan is not None else seed
            self.seed = seed if seed is not None else self.seed
            self.counter.restart()
            self.wrenches.release()
            self.engine.forward()
            self.randomising.observe()
            self.engine.jump()
            self.engine.publish()
            observed = self._observe(view)
            if self.randomising.drawn is not None:
                observed.extras["randomized"] = self.randomising.drawn
            if changed is not None:
                observed.extras["model"] = changed
            return observed

    def _go_to_start(self, keys: Sequence[int] = ()) -> None:
        """The model's start, a keyframe, or several, each for its own robot.

        Robots that no keyframe is about go where the level starts them.
        """
        model, data = self.engine.model, self.engine.data
        self.engine.reset(keys[0] if len(keys) == 1 else None)
        names = {key: model.key(key).name for key in keys}
        for articulation in self.articulations.values():
            own = next((key for key, name in names.items() if name.startswith(f"{articulation.prefix}_")), None)
            if own is None or len(keys) > 1:
                go_to_start(articulation.compiled, model, data, own)
            articulation.stage_from(data.ctrl)
        if len(keys) == 1:
            data.time = model.key_time[keys[0]]

    def _joint_writes(self, asked: Mapping[str, Mapping[str, list[float]]]) -> list[tuple[slice, Any]]:
        return [
            joint_write(self.articulation(prefix).compiled, joint, values)
            for prefix, joints in asked.items()
            for joint, values in joints.items()
        ]

    def _about_recording(self) -> dict[str, Any]:
        seed = {} if self.seed is None else {"seed": self.seed}
        level = {} if self._level_path is None else {"level": self._level_path}
        drawn = self.randomising.drawn
        randomized = {} if drawn is None else {"randomized": msgspec.to_builtins(drawn)}
        return {**level, "rendering": dict(self.capture.rendering()), **seed, **randomized}

    def _live_turn(self) -> float | None:
        """What live mode does when its time has come; simulated seconds until the next turn, if there is one."""
        if self.record_replay.is_playing:
            return self.record_replay.play_on()
        return self.loop.step()

    def advance(self, n_steps: int, deadline: float) -> int:
        """Run a window of mj_steps, several in one call where nothing changes between them; how many ran."""
        engine, done = self.engine, 0
        if n_steps > 1 and self._is_constant():
            done = engine.advance_together(n_steps, deadline, self._count_steps, self._is_constant)
            if done == n_steps or engine.interrupted or time.monotonic() > deadline:
                return done
        return done + engine.advance(n_steps - done, deadline)

    def _is_constant(self) -> bool:
        """Whether controls and forces stay as they are during a window, and nothing looks at its sub-steps."""
        if self.wrenches.pressing or not self.engine.has_own_hooks_only:
            return False
        return not any(one.follows_state for one in self.articulations.values())

    def _count_steps(self, count: int) -> None:
        self.counter.total += count

    def _before_step(self) -> None:
        model, data = self.engine.model, self.engine.data
        for articulation in self.articulations.values():
            articulation.apply_control(model, data)
        if self.wrenches.pressing:
            self.wrenches.press()

    def _after_step(self) -> None:
        self.counter.total += 1
        if self._mode.runs_by_itself:
            self.wrenches.end_window()

    def _observe(self, view: View, keep_state: bool = False) -> Observation:
        level, packed = view
        blocks: PlainBlocks | bytes
        if packed:
            blocks = self.packed.pack(level)
        else:
            blocks = PlainBlocks(self._observer.articulations(level), self._observer.entities())
        snapshot = self.engine.snapshot if keep_state else None
        return Observation(self.engine.data.time, self.counter.total, blocks, self._extras(), snapshot)

    def _extras(self) -> dict[str, Any]:
        """What there is to tell beside the state; most often nothing."""
        extras: dict[str, Any] = {}
        if self.wrenches.held and self._mode.name is StepMode.PUPPET and (held := self.wrenches.blocks()):
            extras["perturbation"] = held[-1]
            if len(held) > 1:
                extras["perturbations"] = held
        if self.record_replay.is_playing:
            extras["replay"] = self.record_replay.replay
        if warnings := self.engine.warnings():
            extras["warnings"] = warnings
        return extras

    # -- lookups ------------------------------------------------------------------------------------------------

    def articulation(self, prefix: str) -> RunningArticulation:
        """The articulation of that prefix; UnknownArticulation lists those that exist."""
        found = self.articulations.get(prefix)
        if found is None:
            raise UnknownArticulation(f"there is no articulation {prefix!r}; there are: {known(self.articulations)}")
        return found

    def find_articulation(self, target: str, *, by_name: bool = False) -> RunningArticulation:
        """The articulation of an actor_id, or else of a prefix."""
        return self.articulation(self.names.prefix(target, by_name=by_name))

    @cached_property
    def contact_names(self) -> ContactNames:
        """What can touch, by compiled and by short name."""
        return ContactNames(self.engine.model, [one.actor.name for one in self.scene.placed])

    def body_id(self, name: str) -> int | None:
        """The body of that compiled name, or None."""
        return self.names.bodies.get(name)

    def set_control_source(self, source: ControlSource, articulation: str | None) -> None:
        """Choose whose setpoints count, for one articulation or all."""
        chosen = self.articulations.values() if articulation is None else [self.articulation(articulation)]
        with self.engine.locked():
            for one in chosen:
                one.staged.source = source
            self.ui_driven = frozenset(
                prefix for prefix, one in self.articulations.items() if one.staged.source is ControlSource.UI
            )

    def control_source(self, prefix: str) -> ControlSource:
        """Whose setpoints count for an articulation. Any thread, without the lock."""
        return self.articulation(prefix).staged.source

    def set_ui_controls(
        self, robot: RunningArticulation, ctrl: list[float] | None, ctrl_map: Mapping[str, float] | None
    ) -> list[float]:
        """Write setpoints of the user interface; returns all of the robot's."""
        with self.engine.locked():
            setpoints = robot.staged.merged(ctrl or None, ctrl_map, ControlSource.UI)
            robot.staged.stage(setpoints, source=ControlSource.UI)
            return [float(value) for value in setpoints]

    # -- replay -------------------------------------------------------------------------------------------------

    def start_replay(self, loop: bool, paused: bool | None) -> tuple[str, int]:
        """Show frame 0 of the active recording; what is played, and how many frames it has.

        Live mode plays it on only where ``paused`` says that the client knows of that; it also pauses or resumes.
        """
        with self.engine.locked():
            if self._mode.runs_by_itself and paused is None:
                raise ReplayRequiresStepped(
                    "replay shows recorded frames step by step: set_mode direct or puppet first; or give paused, false "
                    "to have live mode play them and true to only go from frame to frame with replay_seek"
                )
            started = self.record_replay.start_replay(loop)
            if paused is not None:
                self.loop.set_paused(paused)
            return started

    @property
    def plays_replay(self) -> bool:
        """Whether recorded frames follow one another by themselves. Any thread, without the lock."""
        loop = self.loop
        return self.record_replay.is_playing and self._mode.runs_by_itself and not (loop.paused or loop.held)

    # -- perturbations ------------------------------------------------------------------------------------------

    @property
    def perturbations(self) -> tuple[Perturbation, ...]:
        """What holds bodies now, as an immutable value, for views to draw. Any thread, without the lock."""
        return self.wrenches.held

    def perturb(self, session_id: str, request: PerturbRequest) -> tuple[Perturbation, int]:
        """Hold a body for a session; what holds it, and the version. In force from the next sub-step on."""
        body_id = self.names.body(request.body)
        refuse_fixed(self.scene.model, body_id)
        held = Perturbation(self.scene.model, body_id, session_id, request)
        return held, self.wrenches.hold(held)

    def release(self, session_id: str, body: str | None = None) -> list[str]:
        """Let go of one body, or of all that a session holds; the names of those that were held."""
        if body is None:
            gone = self.wrenches.release(session_id=session_id)
        else:
            gone = self.wrenches.release(body_id=self.names.body(body))
        return [one.body for one in gone]

    # -- states and constraints ---------------------------------------------------------------------------------

    def save_state(self, name: str | None = None) -> tuple[float, bytes]:
        """The simulated time and the whole state, which is kept as well when it has a name."""
        with self.engine.locked():
            state = self._state_codec.take()
            if name:
                self.states.keep(name, state)
            return self.engine.data.time, state

    def restore_state(self, state: bytes, view: View) -> tuple[Observation, dict[str, bool]]:
        """Go to a state of this model, and observe; also which constraints are not as by default. Ends a replay."""
        with self.engine.locked():
            self._state_codec.restore(state)
            self.randomising.restart()
            self.record_replay.end_replay()
            self.engine.jump()
            self.engine.publish()
            return self._observe(view), self._switched_equalities()

    def _switched_equalities(self) -> dict[str, bool]:
        active, default = self.engine.data.eq_active, self.engine.model.eq_active0
        return {name: bool(active[i]) for name, i in self.names.equalities.items() if active[i] != default[i]}

    def set_model_params(self, changes: Sequence[ModelChange], *, until_reset: bool) -> ModelWrites:
        """Change parameters of the model, from the next sub-step on, to what `check_model_params` gave."""
        with self.engine.locked():
            written = self.randomising.changes.set(changes, until_reset=until_reset)
            self.engine.jump()
            self.engine.publish()
            return written

    def set_equality(self, name: str, active: bool) -> str:
        """Switch an equality constraint, from the next sub-step on; returns its compiled name."""
        index = self.names.equality(name)
        with self.engine.locked():
            self.engine.data.eq_active[index] = active
            self.engine.publish()
        compiled: str = self.scene.model.equality(index).name
        return compiled
