"""Engram's objects as gdb finds them in memory: shapes, tensors with their numbers, tapes. engram.py prints them.

Nothing here calls a function of the program. Where memory does not hold what its type says, NoObject or gdb.error is
raised.
"""

import array
import math

import gdb

MOST_WHOLE = 12           # elements of a tensor that is shown whole
FIRST, LAST = 6, 2        # elements that are shown of a larger one
MOST_SUMMED = 1 << 20     # elements up to which a mean is worth its time
MOST_OPERATIONS = 200     # of a tape that are shown
MOST_RECORDED = 1 << 17   # more are no tape
MOST_TEXT = 4096          # characters of a name; more are no name
MAX_RANK = 5

DTYPES = {0: ("f32", 4, "f"), 1: ("f64", 8, "d"), 2: ("bf16", 2, "H"), 3: ("i32", 4, "i"), 4: ("i64", 8, "q")}
DEVICES = {0: "cpu", 1: "cuda", 2: "simulated"}


class NoObject(Exception):
    """The memory does not hold what its type says: it was not made yet, or is gone."""


# Reading memory.


def read(address, count):
    return bytes(gdb.selected_inferior().read_memory(address, count)) if count else b""


def read_word(address):
    return int.from_bytes(read(address, 8), "little")


def first_field(value):
    return value[value.type.strip_typedefs().fields()[0]]


def sizes_of(shape):
    """A Shape as a list of int."""
    rank = int(shape["rank_"])
    if not 0 <= rank <= MAX_RANK:
        raise NoObject("a rank of %d" % rank)
    elements = first_field(shape["dims_"])  # of std::array
    sizes = [int(elements[axis]) for axis in range(rank)]
    if any(size < 0 for size in sizes):
        raise NoObject("a size below 0")
    return sizes


def shape_text(sizes):
    return "[" + ", ".join(map(str, sizes)) + "]"


def device_text(device):
    kind, index = int(device["kind"]), int(device["index"])
    if kind not in DEVICES:
        raise NoObject("a device of kind %d" % kind)
    return "cuda:%d" % index if kind == 1 else DEVICES[kind]


def shared_address(pointer):
    """What a std::shared_ptr points at; 0: nothing. By the names of GCC's library, then of LLVM's."""
    for name in ("_M_ptr", "__ptr_"):
        try:
            return int(pointer[name])
        except gdb.error:
            continue
    raise NoObject("a shared_ptr of an unknown library")


def vector_range(vector):
    """Addresses of a vector's first element and behind its last, and the size of one."""
    try:
        implementation = vector["_M_impl"]
        begin, end = implementation["_M_start"], implementation["_M_finish"]
    except gdb.error:
        begin, end = vector["__begin_"], vector["__end_"]
    return begin, int(end) - int(begin), begin.type.strip_typedefs().target().sizeof


def elements_of(vector, most):
    begin, size, one = vector_range(vector)
    if size < 0 or size % one or size // one > most:
        raise NoObject("a vector of %d bytes" % size)
    return [begin[i] for i in range(size // one)]


def string_text(string):
    """A std::string: Clang does not describe its members, so it is read as GCC's library lays it out."""
    address = int(string.address)
    begin, size = read_word(address), read_word(address + 8)
    if size > MOST_TEXT:
        raise NoObject("a text of %d characters" % size)
    return read(begin, size).decode("utf-8", "replace")


def find_pointer(value, wanted, depth=0):
    """The first pointer to `wanted` anywhere inside: a unique_ptr's, in whatever its library wraps it."""
    kind = value.type.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_PTR:
        return value if str(kind.target().unqualified()) == wanted else None
    if kind.code != gdb.TYPE_CODE_STRUCT or depth > 8:
        return None
    for field in kind.fields():
        if hasattr(field, "bitpos"):  # else static
            found = find_pointer(value[field], wanted, depth + 1)
            if found is not None:
                return found
    return None


# Tensors.


class TensorView:
    """A Tensor, read; raises NoObject or gdb.error where it is none."""

    def __init__(self, tensor):
        storage = shared_address(tensor["storage_"])
        self.empty = storage == 0
        self.sizes = sizes_of(tensor["shape_"])
        self.count = math.prod(self.sizes)
        dtype = int(tensor["dtype_"])
        if dtype not in DTYPES:
            raise NoObject("a dtype of %d" % dtype)
        self.dtype, self.bytes, self.code = DTYPES[dtype]
        self.device = device_text(tensor["device_"])
        if not self.empty:
            held = gdb.Value(storage).cast(gdb.lookup_type("engram::Storage").pointer()).dereference()
            self.address = int(held["data_"]) + int(tensor["offset_"])

    def numbers(self, begin, end):
        words = array.array(self.code, read(self.address + begin * self.bytes, (end - begin) * self.bytes))
        if self.dtype == "bf16":
            return array.array("f", array.array("I", [word << 16 for word in words]).tobytes())
        return words

    def head(self):
        return "no tensor" if self.empty else "%s %s" % (self.dtype, shape_text(self.sizes))

    def text(self):
        if self.empty:
            return "no tensor"
        text = "%s on %s at %#x" % (self.head(), self.device, self.address)
        if self.device.startswith("cuda"):
            return text + ", in the card's memory"
        if self.count == 0:
            return text + ", no elements"
        try:
            return text + ": " + self.numbers_text()
        except gdb.MemoryError:
            return text + ", memory that cannot be read"

    def numbers_text(self):
        if self.count <= MOST_WHOLE:
            return self.rows_text(self.numbers(0, self.count))
        text = "%s ... %s" % (" ".join(map(number_text, self.numbers(0, FIRST))),
                              " ".join(map(number_text, self.numbers(self.count - LAST, self.count))))
        return text + self.summary() if self.count <= MOST_SUMMED else text

    def rows_text(self, numbers):
        columns = self.sizes[-1] if self.sizes else 1
        rows = [numbers[i:i + columns] for i in range(0, len(numbers), columns)]
        return " | ".join(" ".join(map(number_text, row)) for row in rows)

    def summary(self):
        numbers = [number for number in self.numbers(0, self.count) if math.isfinite(number)]
        lost = self.count - len(numbers)
        text = ", %d not finite" % lost if lost else ""
        if not numbers:
            return text
        return text + ", %s to %s, mean %s" % tuple(
            map(number_text, (min(numbers), max(numbers), math.fsum(numbers) / len(numbers))))


def bf16_text(bits):
    return number_text(array.array("f", (bits << 16).to_bytes(4, "little"))[0])


def number_text(number):
    return "%.5g" % number if isinstance(number, float) else str(number)


# Tapes.


class TapeView:
    """A Tape: its recorded operations and slots, read."""

    def __init__(self, tape):
        self.tape = tape
        self.slots = vector_range(tape["slots_"])
        self.recorded = elements_of(tape["nodes_"], MOST_RECORDED)
        self.places = elements_of(tape["places_"], MOST_RECORDED)
        self.training = int(tape["mode_"]) == 0

    def slot(self, number):
        begin, size, one = self.slots
        if not 0 <= number * one < size:
            raise NoObject("slot %d" % number)
        return begin[number]

    def places_of(self, recorded):
        """Slots of an operation's inputs and of its outputs."""
        first, inputs = int(recorded["first"]), int(recorded["input_count"])
        last = first + inputs + int(recorded["output_count"])
        if not 0 <= first <= last <= len(self.places):
            raise NoObject("places %d to %d" % (first, last))
        places = [int(place) for place in self.places[first:last]]
        return places[:inputs], places[inputs:]

    def shapes_text(self, slots):
        return " ".join("-" if slot < 0 else shape_text(sizes_of(self.slot(slot)["shape"])) for slot in slots)

    def has_gradient(self, slot):
        return slot >= 0 and not TensorView(self.slot(slot)["gradient"]).empty

    def row(self, number):
        recorded = self.recorded[number]
        inputs, outputs = self.places_of(recorded)
        node = node_of(recorded)
        name = "(has run)" if node is None else class_name(node)
        scope = string_text(recorded["scope"])
        row = [str(number), name, scope, "%s -> %s" % (self.shapes_text(inputs), self.shapes_text(outputs))]
        row.append("keeps " + " ".join(kept_texts(node)) if node is not None and kept_texts(node) else "")
        if any(self.has_gradient(slot) for slot in outputs):
            row.append("gradient is there")
        return row

    def text(self):
        kind = "training" if self.training else "inference"
        text = "tape of %d operations, %s" % (len(self.recorded), kind)
        rows = [self.row(number) for number in range(min(len(self.recorded), MOST_OPERATIONS))]
        widths = [max(len(row[column]) for row in rows) if rows else 0 for column in range(4)]
        for row in rows:
            cells = [row[0].rjust(widths[0])] + [row[i].ljust(widths[i]) for i in (1, 2, 3) if widths[i]]
            text += "\n  " + "  ".join(cells + [cell for cell in row[4:] if cell]).rstrip()
        left = len(self.recorded) - len(rows)
        return text + ("\n  and %d more" % left if left else "")


def node_of(recorded):
    """The node of a recorded operation as what it is; None when it has run and is gone."""
    pointer = find_pointer(recorded["node"], "engram::Node")
    if pointer is None:
        raise NoObject("a tape of an unknown library")
    if int(pointer) == 0:
        return None
    return pointer.cast(pointer.dynamic_type).dereference()


def class_name(node):
    return str(node.type).replace("(anonymous namespace)::", "").replace("engram::", "")


def kept_texts(value, depth=0):
    """Name and shape of every tensor that a node keeps, also in structs of its own."""
    texts = []
    for field in value.type.strip_typedefs().fields():
        kind = field.type.strip_typedefs()
        if kind.code != gdb.TYPE_CODE_STRUCT or not hasattr(field, "bitpos"):
            continue
        if str(kind.unqualified()) == "engram::Tensor":
            view = TensorView(value[field])
            if not view.empty:
                texts.append("%s %s" % (field.name, shape_text(view.sizes)))
        elif depth < 3 and str(kind).startswith("engram::"):
            texts += kept_texts(value[field], depth + 1)
    return texts


def place_text(tape, number):
    """What a slot of a tape is to a variable, and whether its gradient is there."""
    slot = TapeView(tape).slot(number)
    if int(slot["parameter"]):
        parameter = slot["parameter"].dereference()
        return "parameter %s" % string_text(parameter["name_"]), TensorView(parameter["gradient_"])
    return "leaf" if bool(slot["kept"]) else "result", TensorView(slot["gradient"])
