"""What gdb shows of Engram: shapes, tensors with their numbers, variables, tapes; and threads of the simulated device.

    (gdb) source apps/gdb/engram.py

docs/guide/debugging.md walks through it. Needs a build with -g (preset teach) and gdb 13 or newer. What is no object
yet, or no longer, is shown as such.
"""

import os
import sys

import gdb
import gdb.printing

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import engram_lanes
from engram_objects import (NoObject, TapeView, TensorView, bf16_text, class_name, device_text, node_of, place_text,
                            shape_text, sizes_of, string_text)


def is_summary():
    """Whether gdb wants few words: a function's argument in a list of frames."""
    return bool(gdb.print_options().get("summary"))


class Printer:
    """A value by `text(value)`; what cannot be read is said, and is no error of gdb's."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        try:
            return self.summary(self.value) if is_summary() else self.text(self.value)
        except NoObject as reason:
            return "(no %s: %s)" % (self.what, reason)
        except (gdb.error, ValueError, OverflowError, TypeError, KeyError, RuntimeError) as reason:
            return "(no %s: %s)" % (self.what, str(reason).splitlines()[0] if str(reason) else type(reason).__name__)

    def summary(self, value):
        return self.text(value)


class ShapePrinter(Printer):
    what = "Shape"

    def text(self, value):
        return shape_text(sizes_of(value))


class DevicePrinter(Printer):
    what = "Device"

    def text(self, value):
        return device_text(value)


class Bf16Printer(Printer):
    what = "bf16"

    def text(self, value):
        return bf16_text(int(value["bits"]))


class TensorPrinter(Printer):
    what = "Tensor"

    def text(self, value):
        return TensorView(value).text()

    def summary(self, value):
        return TensorView(value).head()


class TargetPrinter(Printer):
    what = "Target"

    def text(self, value):
        view = TensorView(value["tensor"])
        if view.empty:
            return "not wanted"
        return ("add to " if int(value["write"]) else "set ") + view.text()

    def summary(self, value):
        return TensorView(value["tensor"]).head()


class VariablePrinter(Printer):
    what = "Variable"

    def text(self, value):
        view, tape, slot = TensorView(value["value_"]), value["tape_"], int(value["slot_"])
        if not int(tape):
            return "absent"
        if slot < 0:
            return "constant " + view.text()
        place, gradient = place_text(tape.dereference(), slot)
        held = "no gradient yet" if gradient.empty else "gradient " + gradient.text()
        return "%s in slot %d, %s\n  %s" % (place, slot, view.text(), held)

    def summary(self, value):
        return TensorView(value["value_"]).head()


class TapePrinter(Printer):
    what = "Tape"

    def text(self, value):
        return TapeView(value).text()

    def summary(self, value):
        return "tape of %d" % len(TapeView(value).recorded)


class ParameterPrinter(Printer):
    what = "Parameter"

    def text(self, value):
        name = string_text(value["name_"]) or "(without a name)"
        text = "%s %s" % (name, shape_text(sizes_of(value["shape_"])))
        values, gradient = TensorView(value["value_"]), TensorView(value["gradient_"])
        text += "\n  value " + ("not placed" if values.empty else values.text())
        return text if gradient.empty else text + "\n  gradient " + gradient.text()

    def summary(self, value):
        return string_text(value["name_"])


class BackwardPrinter(Printer):
    what = "Backward"

    def text(self, value):
        tape, number = TapeView(value["tape_"].dereference()), int(value["node_"])
        if not 0 <= number < len(tape.recorded):
            raise NoObject("operation %d" % number)
        inputs, outputs = tape.places_of(tape.recorded[number])
        node = node_of(tape.recorded[number])
        lines = ["backward of operation %d of %d, %s" %
                 (number, len(tape.recorded), "(has run)" if node is None else class_name(node))]
        for i, slot in enumerate(outputs):
            gradient = TensorView(tape.slot(slot)["gradient"])
            lines.append("output %d: %s" % (i, "no gradient" if gradient.empty else "gradient " + gradient.text()))
        for i, slot in enumerate(inputs):
            lines.append("input %d: %s" % (i, self.input_text(tape, slot)))
        return "\n  ".join(lines)

    def summary(self, value):
        return "operation %d" % int(value["node_"])

    @staticmethod
    def input_text(tape, slot):
        if slot < 0:
            return "no gradient is wanted"
        place, gradient = place_text(tape.tape, slot)
        size = shape_text(sizes_of(tape.slot(slot)["shape"]))
        return "%s %s, %s" % (place, size, "nothing there yet" if gradient.empty else "gradient " + gradient.text())


class StatePrinter(Printer):
    """Where a simulated thread stands."""

    what = "Thread"

    def text(self, value):
        return engram_lanes.lane_text(value)


def make_printers():
    printers = gdb.printing.RegexpCollectionPrettyPrinter("engram")
    for name, printer in (("Shape", ShapePrinter), ("Device", DevicePrinter), ("bf16", Bf16Printer),
                          ("Tensor", TensorPrinter), ("Target", TargetPrinter), ("Variable", VariablePrinter),
                          ("Tape", TapePrinter), ("Parameter", ParameterPrinter), ("Backward", BackwardPrinter),
                          ("simulated::Thread", StatePrinter)):
        printers.add_printer(name, "^engram::%s$" % name, printer)
    return printers


gdb.printing.register_pretty_printer(gdb.current_objfile(), make_printers(), replace=True)


class NodeFunction(gdb.Function):
    """$engram_node(TAPE, N): operation N of a tape as the struct that it is; its members are what it keeps."""

    def __init__(self):
        super().__init__("engram_node")

    def invoke(self, tape, number):
        view = TapeView(tape.dereference() if tape.type.strip_typedefs().code == gdb.TYPE_CODE_PTR else tape)
        if not 0 <= int(number) < len(view.recorded):
            raise gdb.GdbError("engram_node: the number must be 0 to %d, got %d" % (len(view.recorded) - 1, number))
        node = node_of(view.recorded[int(number)])
        if node is None:
            raise gdb.GdbError("engram_node: operation %d has run, and is gone" % number)
        return node


NodeFunction()
