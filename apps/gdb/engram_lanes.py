"""Which thread, lane, warp and block of the simulated device a program is in: commands engram-lane and engram-warp."""

import gdb

WARP = 32


def index_text(index):
    return "(%d, %d, %d)" % (int(index["x"]), int(index["y"]), int(index["z"]))


def lane_text(thread):
    number = int(thread["number"])
    return "thread %s of block %s: lane %d of warp %d" % (index_text(thread["thread"]), index_text(thread["block"]),
                                                          number % WARP, number // WARP)


def current_thread():
    try:
        place = gdb.parse_and_eval("engram::simulated::current_place")
        running = int(place) != 0
    except gdb.error:  # no program, or one without the device
        running = False
    if not running:
        raise gdb.GdbError("no simulated thread is running here: stop inside of a kernel on the device simulated")
    return place.cast(gdb.lookup_type("engram::simulated::Thread").pointer()).dereference()


def threads_of(block):
    """The threads of a block, by number, out of the pieces of a std::deque of GCC's library."""
    implementation = block["threads_"]["_M_impl"]
    start = implementation["_M_start"]
    one = start["_M_cur"].type.strip_typedefs().target().sizeof
    in_piece = max(1, 512 // one)
    skipped = (int(start["_M_cur"]) - int(start["_M_first"])) // one
    for number in range(int(block["count_"])):
        piece, place = divmod(skipped + number, in_piece)
        yield (start["_M_node"] + piece).dereference()[place]


def state_text(thread, running):
    if int(thread["number"]) == running:
        return "runs, and is where gdb is"
    state = int(thread["state"])
    if state == 3:
        return "returned from the kernel"
    if state == 0:
        return "can run, and has its turn later"
    site = thread["site"]
    text = "waiting in %s:%d: %s" % (site["file"].string(), int(site["line"]), site["name"].string())
    return text + (", mask %#010x" % int(thread["mask"]) if state == 2 else "")


def ranges_text(numbers):
    """"0-3, 7" of sorted numbers."""
    parts = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join("%d" % a if a == b else "%d-%d" % (a, b) for a, b in parts)


class LaneCommand(gdb.Command):
    """engram-lane: which thread, lane, warp and block of the simulated device the program is in."""

    def __init__(self):
        super().__init__("engram-lane", gdb.COMMAND_STATUS)

    def invoke(self, _argument, _from_terminal):
        thread = current_thread()
        print("%s; blocks of %s, a grid of %s" %
              (lane_text(thread), index_text(thread["block_size"]), index_text(thread["grid_size"])))


class WarpCommand(gdb.Command):
    """engram-warp: what every lane of the running thread's warp is doing."""

    def __init__(self):
        super().__init__("engram-warp", gdb.COMMAND_STATUS)

    def invoke(self, _argument, _from_terminal):
        thread = current_thread()
        running = int(thread["number"])
        lanes = {}
        for other in threads_of(thread["owner"].dereference()):
            if int(other["number"]) // WARP == running // WARP:
                lanes.setdefault(state_text(other, running), []).append(int(other["number"]) % WARP)
        print("warp %d of block %s" % (running // WARP, index_text(thread["block"])))
        for state, numbers in lanes.items():
            print("  lane%s %s: %s" % ("" if len(numbers) == 1 else "s", ranges_text(numbers), state))


LaneCommand()
WarpCommand()
