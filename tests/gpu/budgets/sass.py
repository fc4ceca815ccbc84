"""Reads kernels as the disassembler prints them (nvdisasm): what they use, and how many instructions a warp executes on
one round of a loop with products on tensor cores."""

import collections
import re

SHARED = {"LDGSTS", "LDS", "STS"}  # accesses to shared memory
# The two multipliers of Philox (core/philox.hpp) as operands: they mark where random numbers are drawn.
PHILOX = re.compile(r"-0x2daee0ad|-0x326172a9|0xd2511f53|0xcd9e8d57")
CODE = re.compile(r"\s+/\*[0-9a-f]+\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)([^;]*);")
LABEL = re.compile(r"\s*(\.L_x_\w+|\$?\.?[\w$]+):")
JUMP = re.compile(r"`\((\.L_x_\w+)\)")

Instruction = collections.namedtuple("Instruction", "guard name operands")


class Kernel:
    """The instructions of one function, and where control goes after each."""

    def __init__(self):
        self.code = []
        self.labels = {}

    def next_places(self):
        """For every instruction, the instructions that may follow it."""
        waiting = {}  # barrier register -> label of its BSSY, as threads wait for each other there
        places = []
        for i, one in enumerate(self.code):
            here = [i + 1] if i + 1 < len(self.code) else []
            jump = JUMP.search(one.operands)
            kind = one.name.split(".")[0]
            if kind == "BSSY":
                waiting[one.operands.split(",")[0].strip()] = jump.group(1)
            elif kind == "BSYNC":
                label = waiting.get(one.operands.strip())
                here = [self.labels[label]] if label in self.labels else here
            elif kind == "BRA" and jump and jump.group(1) in self.labels:
                always = not one.guard and "P" not in one.operands.split("`")[0]
                here = [self.labels[jump.group(1)]] + ([] if always else here)
            elif kind in ("EXIT", "RET") and not one.guard:
                here = []
            places.append([place for place in here if place < len(self.code)])
        return places

    def counts(self):
        """Spills, calls, f64 instructions and the widest accesses to memory of the card, in bits."""
        kinds = collections.Counter(one.name.split(".")[0] for one in self.code)
        widest = {"LDG": 0, "STG": 0}
        for one in self.code:
            kind, *rest = one.name.split(".")
            kind = "LDG" if kind == "LDGSTS" else kind  # by an asynchronous copy
            if kind in widest:
                bits = next((int(part) for part in rest if part in ("64", "128")), 0)
                bits = bits or (8 if "U8" in rest or "S8" in rest else 16 if "U16" in rest or "S16" in rest else 32)
                widest[kind] = max(widest[kind], bits)
        f64 = sum(one.name[:4] in ("DADD", "DMUL", "DFMA", "DSET", "DMNM") or "F64" in one.name for one in self.code)
        return {"spills": kinds["STL"] + kinds["LDL"], "calls": kinds["CALL"], "f64": f64, "load": widest["LDG"],
                "store": widest["STG"]}

    def tile_loops(self, rounds=4):
        """Of every outermost loop with products: (instructions of one round, loops without products on its way, which
        count as if they went round once). The way through a loop is the one with most products, then with most random
        numbers and accesses to shared memory, then with fewest instructions: so dropout is on, all rows of a tile are
        there, and what only its edges need is left out. A loop with products inside of another one counts `rounds`
        times: it goes over the blocks of 16 rows of a tile of 64, or with products by warpgroups over as many as one has columns.
        Without random numbers loads from the card's memory are wanted too: a step of the past's products stores what the
        step before it has loaded. In attention those that no store to shared memory needs serve edges."""
        graph = {i: places for i, places in enumerate(self.next_places())}
        found = []
        for part in components(graph, list(graph)):
            if is_loop(graph, part) and any(is_product(self.code[i]) for i in part):
                draws = any(PHILOX.search(self.code[i].operands) for i in part)
                wanted = SHARED if draws else SHARED | {"LDG"}
                _, _, fewest, rolled = self.round_of(graph, part, rounds, wanted)
                found.append((min(part), -fewest, -rolled))
        return [(instructions, rolled) for _, instructions, rolled in sorted(found)]

    def round_of(self, graph, part, rounds, wanted):
        """Weight of the best way once through a loop: (products, random numbers and accesses, minus instructions, minus
        loops without products)."""
        inside = set(part)
        entered = {place for i in graph if i not in inside for place in graph[i] if place in inside}
        head = min(entered) if entered else min(part)
        forward = {i: [place for place in graph[i] if place in inside and place != head] for i in part}
        parts = components(forward, part)
        part_of = {i: number for number, members in enumerate(parts) for i in members}
        weight = []
        for members in parts:
            if is_loop(forward, members):
                one = self.round_of(forward, members, rounds, wanted)
                columns = [int(self.code[i].name.split("x")[1]) for i in members if self.code[i].name.startswith("HGMMA")]
                times = 64 // min(columns) if columns else rounds
                weight.append(tuple(times * x for x in one) if one[0] > 0 else one[:3] + (one[3] - 1,))
            else:
                one = self.code[members[0]]
                weight.append((is_product(one), is_wanted(one, wanted), -1, 0))
        # components() gives what follows before what leads there.
        best = [None] * len(parts)
        for number, members in enumerate(parts):
            after = [best[part_of[place]] for i in members for place in forward[i] if part_of[place] != number]
            back = any(head in graph[i] for i in members)
            after = [way for way in after if way is not None] + ([(0, 0, 0, 0)] if back else [])
            if after:
                best[number] = tuple(a + b for a, b in zip(weight[number], max(after)))
        return best[part_of[head]]


def is_product(one):
    return one.name.startswith(("HMMA", "HGMMA"))


def is_wanted(one, wanted):
    """Accesses that never happen, @!PT, are put before asynchronous copies by the compiler; they only take their turn."""
    if one.guard == "@!PT":
        return False
    return one.name.split(".")[0] in wanted or bool(PHILOX.search(one.operands))


def is_loop(graph, part):
    return len(part) > 1 or part[0] in graph[part[0]]


def components(graph, nodes):
    """Strongly connected components (Tarjan), each after all that it leads to."""
    number, low, waiting, on_stack, found = {}, {}, [], set(), []
    allowed = set(nodes)
    for start in nodes:
        if start in number:
            continue
        calls = [(start, iter(graph[start]))]
        number[start] = low[start] = len(number)
        waiting.append(start)
        on_stack.add(start)
        while calls:
            node, following = calls[-1]
            for place in following:
                if place not in allowed:
                    continue
                if place not in number:
                    number[place] = low[place] = len(number)
                    waiting.append(place)
                    on_stack.add(place)
                    calls.append((place, iter(graph[place])))
                    break
                if place in on_stack:
                    low[node] = min(low[node], number[place])
            else:
                calls.pop()
                if calls:
                    low[calls[-1][0]] = min(low[calls[-1][0]], low[node])
                if low[node] == number[node]:
                    part = []
                    while not part or part[-1] != node:
                        part.append(waiting.pop())
                        on_stack.discard(part[-1])
                    found.append(part)
    return found


def kernels(listing):
    """name -> Kernel of a listing of nvdisasm."""
    found, kernel = {}, None
    for line in listing:
        if line.startswith(".text."):
            kernel = found[line[6:].rstrip().rstrip(":")] = Kernel()
        elif line.startswith("//---") or line.startswith("\t.section"):
            if ".text." not in line:
                kernel = None
        elif kernel is not None:
            code = CODE.match(line)
            if code:
                kernel.code.append(Instruction(code.group(1), code.group(2), code.group(3)))
            else:
                label = LABEL.match(line)
                if label:
                    kernel.labels[label.group(1)] = len(kernel.code)
    return found
