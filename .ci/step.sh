# shellcheck shell=bash
# Steps of a run: each is announced, timed, bounded, and named when it fails. Sourced by .ci/run.

current='before the first step'
step_pid=
# A folder for what the run itself needs, gone when it ends.
scratch=$(mktemp -d /tmp/vtq-run.XXXXXX)

# step NAME LIMIT COMMAND...  runs one check; the run ends with the first that fails.
step() {
    local name=$1 limit=$2 started=$SECONDS status=0
    shift 2
    current=$name
    printf '\n== %s\n' "$name"
    # In the background, because bash answers a signal only between foreground commands. That would start the
    # command with SIGINT ignored, which the programs under test must be able to receive: hence default-signal.
    env --default-signal=INT,QUIT timeout --kill-after=20s "$limit" "$@" &
    step_pid=$!
    wait "$step_pid" || status=$?
    step_pid=
    ((status != 124)) || printf '%s: stopped at its limit of %s\n' "$name" "$limit"
    ((status == 0)) || exit "$status"
    printf -- '-- %s: %d s\n' "$name" $((SECONDS - started))
    current="after $name"
}

# note TEXT  says what was left out, where it can be seen.
note() {
    printf '\n== note: %s\n' "$1"
}

# give_up TEXT  ends the run for a reason that is no step.
give_up() {
    current=$1
    exit 1
}

# finish  ends a run in which every step passed.
finish() {
    current=
    printf '\n== all steps passed in %d s\n' "$SECONDS"
}

on_signal() {
    # timeout passes the signal on to the whole group of the step.
    [[ -z $step_pid ]] || { kill -TERM "$step_pid" && wait "$step_pid"; } || true
    current="$current (interrupted)"
    exit $((128 + $1))
}

on_exit() {
    local status=$?
    rm -rf "$scratch"
    [[ -z $current ]] || printf '\n== FAILED: %s (exit %d, after %d s)\n' "$current" "$status" "$SECONDS"
    exit "$status"
}

trap on_exit EXIT
trap 'on_signal 1' HUP
trap 'on_signal 2' INT
trap 'on_signal 15' TERM
