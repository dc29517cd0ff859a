"""The modes that scripts/crash-night tries with each recipe. A new one is one line in MODES."""

import dataclasses

SYNCFS = 'while sleep 1; do sync --file-system "$REFIT_DIR"; done'
# dirty_writeback_centisecs wakes the flusher; it writes what is older than dirty_expire_centisecs, 30 s by default
# (https://docs.kernel.org/admin-guide/sysctl/vm.html).
AWAKE = {"dirty_writeback_centisecs": 100}
EAGER = {"dirty_writeback_centisecs": 100, "dirty_expire_centisecs": 100}


@dataclasses.dataclass(frozen=True)
class Environment:
    """What else happens on the machine during a run of refit crash, its baseline included."""

    name: str
    background: str | None = None
    sysctls: dict = dataclasses.field(default_factory=dict, hash=False)
    # A run lasts at least this long, because what it does takes that long to show.
    seconds: int = 0
    # Something is flushed now and then: some losses are races, and such a run is repeated.
    is_race: bool = False


PLAIN = Environment("plain")
EACH_SECOND = Environment("syncfs", background=SYNCFS, is_race=True)
FLUSHER_AWAKE = Environment("writeback", sysctls=AWAKE, seconds=45)
FLUSHER_EAGER = Environment("writeback-expire", sysctls=EAGER, seconds=12, is_race=True)


@dataclasses.dataclass(frozen=True)
class Mode:
    """A row of the tables."""

    about: str
    # As refit crash takes it; None is the baseline.
    variant: str | None
    environment: Environment = PLAIN
    # Tried where a variant of the recipe has it: elsewhere no file is opened with O_DIRECT.
    needs_odirect: bool = False


MODES = [
    Mode("`on` (baseline)", None),
    Mode("`sync=off`", "sync=off"),
    Mode("`odirect=off`", "odirect=off", needs_odirect=True),
    Mode("`odirect=off+sync=off`", "odirect=off+sync=off", needs_odirect=True),
    Mode("`sync=off`, and a syncfs every second", "sync=off", EACH_SECOND),
    Mode("`sync=off`, and `vm.dirty_writeback_centisecs=100`", "sync=off", FLUSHER_AWAKE),
    Mode("… and `vm.dirty_expire_centisecs=100` too", "sync=off", FLUSHER_EAGER),
]
