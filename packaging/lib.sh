# shellcheck shell=bash
# What the scripts of this folder share: saying what goes on, and running one long command quietly.
# Everything a person reads goes to standard error, so that standard output stays data.

say() { printf '%s\n' "$*" >&2; }

# die MESSAGE [REPAIR]: the cause on one line, what to do about it on the next.
die() {
  printf 'error: %s\n' "$1" >&2
  [ $# -lt 2 ] || printf '  fix: %s\n' "$2" >&2
  exit 1
}

# root_prefix WHAT REPAIR: fills the array as_root with what makes a command run as root: nothing, or sudo. A password is
# asked for here, where it can be seen, not behind a progress line.
root_prefix() {
  as_root=()
  [ "$(id -u)" -ne 0 ] || return 0
  command -v sudo >/dev/null || die "$1 needs root, and there is no sudo" "$2"
  sudo -v || die "sudo refused" "$2"
  # shellcheck disable=SC2034
  as_root=(sudo)
}

# quietly TEXT LOG COMMAND...: runs the command with its output in LOG and shows TEXT with the elapsed seconds: on a
# terminal one line that counts, with ninja's [n/m] when the log has it; elsewhere a line at the start, one each
# 30 seconds, and one at the end. On failure the log's tail is shown. Returns the command's status.
quietly() {
  local text=$1 log=$2 begin=$SECONDS pid status=0 next=30 traps
  shift 2
  [ -t 2 ] || say "$text ..."
  "$@" >"$log" 2>&1 </dev/null &
  pid=$!
  # An interrupt must not leave the command running behind the prompt.
  traps=$(trap -p INT TERM)
  trap 'kill "$pid" 2>/dev/null; exit 130' INT TERM
  while kill -0 "$pid" 2>/dev/null; do
    if [ -t 2 ]; then
      printf '\r\033[K%s ... %ds %s' "$text" $((SECONDS - begin)) "$(last_count "$log")" >&2
    elif [ $((SECONDS - begin)) -ge "$next" ]; then
      say "$text ... $((SECONDS - begin))s $(last_count "$log")"
      next=$((next + 30))
    fi
    sleep 0.2
  done
  wait "$pid" || status=$?
  trap - INT TERM
  eval "$traps"
  [ ! -t 2 ] || printf '\r\033[K' >&2
  if [ "$status" -eq 0 ]; then
    say "$text: done in $((SECONDS - begin))s"
  else
    say "$text: FAILED after $((SECONDS - begin))s; the end of $log:"
    tail -n 40 "$log" | sed 's/^/  | /' >&2
  fi
  return "$status"
}

last_count() { tail -n 3 "$1" 2>/dev/null | grep -oE '^\[[0-9]+/[0-9]+\]' | tail -n 1; }
