# Waits beside a throwaway cluster; if its owner dies without a word, stops the server and removes the folder ($1).
#
# The owner holds the other end of standard input. A line on it means that the owner has taken leave and this script
# has nothing to do. End of file without a line means that the owner is dead: killed, aborted or interrupted.

# Only the owner's death counts. The server keeps its own handlers: it is started by the owner, not from here.
trap '' INT HUP TERM QUIT
cd / || exit 1
if read -r word; then exit 0; fi

pid=
if [ -r "$1/data/postmaster.pid" ]; then read -r pid <"$1/data/postmaster.pid"; fi

# The server, or initdb, is in the process group that this script leads. While the leader lives that group's number
# cannot be given to anyone else, so this never hits a stranger, which a remembered process id could.
kill -QUIT 0

tries=0
while [ -n "$pid" ] && [ -e "$1/data/postmaster.pid" ] && kill -0 "$pid" 2>/dev/null && [ "$tries" -lt 50 ]; do
    sleep 0.1
    tries=$((tries + 1))
done

# Once more if something was written while it was being removed: initdb's children take a moment to go.
tries=0
until rm -rf "$1" 2>/dev/null || [ "$tries" -ge 20 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
# Whoever is left in the group by now is stuck; and this script is done.
kill -KILL 0
