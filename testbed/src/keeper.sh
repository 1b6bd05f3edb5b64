# Cleans up after one testbed, however its owner ends.
#
# Run as `sh -c THIS keeper DIR` with standard input held open by the owner. It makes DIR, says `ready`, and waits
# for the end of its input, which comes when the owner closes it or dies, kill -9 included. Then it ends every process
# whose pid is recorded in DIR/pids and removes DIR.
dir=$1
# The terminal's signals are meant for the owner; its end is what ends us.
trap '' HUP INT QUIT TERM PIPE
mkdir -m 700 "$dir" && mkdir "$dir/pids" || exit 1
echo ready
exec >/dev/null 2>&1
cat

# A component records its pid in DIR/pids before it becomes the program. After this rename it no longer can, and
# gives up: so none can start behind our back.
mv "$dir/pids" "$dir/ending"

# A pid may have been given to a stranger since it was recorded; ours has DIR in its arguments.
is_ours() {
  if [ -d /proc/self ]; then
    tr '\0' ' ' <"/proc/$1/cmdline" | grep -qF "$dir"
  else
    ps -o args= -p "$1" | grep -qF "$dir"
  fi
}

for file in "$dir"/ending/*; do
  pid=$(cat "$file") || continue
  is_ours "$pid" && kill -KILL "$pid"
done
# A dying process may still write: give each up to five seconds to be gone before its folder goes.
for file in "$dir"/ending/*; do
  pid=$(cat "$file") || continue
  tries=0
  while is_ours "$pid" && [ "$tries" -lt 50 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
done
rm -rf "$dir"
