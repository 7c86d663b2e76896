"""goro-gdb.py - goroutines in gdb: a live process, a stopped one, a core.

    info goroutines         every goroutine: its number, its state, where it is
    goroutine N             selects one: backtrace, up, down, frame, info locals are its own
    goroutine N COMMAND     one command there: goroutine 7 bt
    goroutine all COMMAND   in each of them
    goroutine               the selected one; "goroutine 0" goes back to the thread

and goro's channels, locks, wait groups, contexts and goroutines are printed in words.

The library holds this file, in its section .debug_gdb_scripts, so gdb finds it by itself where
"set auto-load safe-path" lets it; "source goro-gdb.py" does the same by hand. It reads
the runtime's structures by their debug information, and changes nothing in the process.

How a goroutine is selected. One that runs is on a thread, which is selected. One at rest
has its registers in struct g. An unwinder says that the caller of the thread's innermost frame is
where the goroutine rests, and a frame filter hides that innermost frame. So all of gdb works on the
goroutine's frames, and no register is written, which a core would not allow.

Stacks that are away. A goroutine that waits for long may have its stack in few bytes elsewhere
(evacuate.c), where gdb cannot read it, nor the struct g at its top. Its pages are restored here
(unshrink), and its frames are found by the unwind tables (.eh_frame) on these pages; the
unwinder above tells gdb each of them. Their variables on the stack cannot be read.
"""
import bisect
import re
import struct

import gdb
import gdb.printing
import gdb.unwinder

COLOURS, COLOUR_LINES = 4, 7        # STACK_COLOURS, STACK_COLOUR_BYTES / CACHE_LINE: stack.h
SLOT_STATE, SLOT_WARM = 3, 1        # enum slot_state: stack.c
FILES = {"stack": "stack/stack.c", "evacuate": "reclaim/evacuate.c"}


def variable(name, file):
    """A variable of the runtime's, of a file of its own or of the one file goro.c."""
    for place in (f"'{FILES[file]}'::{name}", f"'goro.c'::{name}", f"'goro.c'::{file}_c_{name}"):
        try:
            return gdb.parse_and_eval(place)
        except gdb.error:
            pass
    raise gdb.GdbError("no debug information of goro's here")


def address_of(value):
    return int(value.cast(gdb.lookup_type("unsigned long")))


def page_bytes():
    return 4096 if "x86" in gdb.selected_inferior().architecture().name() else \
        int(variable("os_page_bytes", "evacuate"))


# ----------------------------------------------------------- stacks that are away

def unshrink(data, size):
    """A page, from what shrink.c wrote: a bit for each group of eight words; of each group that is
    not zero a nibble a word, the number of its bytes, and these bytes."""
    page, at = bytearray(size), size // 64 // 8
    for group in range(size // 64):
        if not data[group // 8] >> group % 8 & 1:
            continue
        nibbles, = struct.unpack_from("<I", data, at)
        at += 4
        for word in range(8):
            n = nibbles >> 4 * word & 15
            page[group * 64 + word * 8:group * 64 + word * 8 + n] = data[at:at + n]
            at += n
    return bytes(page)


class Stack:
    """The memory of a stack: its pages that are away, and all else as gdb reads it."""
    def __init__(self, top=0, copies=None):
        self.top, self.copies, self.pages, self.size = top, {}, {}, 0
        if copies is None or int(copies) == 0:
            return
        self.size = page_bytes()
        while int(copies):
            self.copies[int(copies["page"])] = address_of(copies["data"].address)
            copies = copies["next"]

    def is_away(self):
        return bool(self.copies)

    def read(self, address, n):
        if self.copies and address < self.top:
            page = (self.top - 1 - address) // self.size
            if page in self.copies:
                start = self.top - (page + 1) * self.size
                if page not in self.pages:
                    memory = gdb.selected_inferior().read_memory(self.copies[page], self.size)
                    self.pages[page] = unshrink(bytes(memory), self.size)
                part = self.pages[page][address - start:address - start + n]
                return part if len(part) == n else part + self.read(address + len(part), n - len(part))
        return bytes(gdb.selected_inferior().read_memory(address, n))

    def word(self, address):
        return struct.unpack("<Q", self.read(address, 8))[0]


class Reader:
    """Bytes as DWARF has them."""
    def __init__(self, data, address, at=0):
        self.data, self.address, self.at = data, address, at

    def number(self, format):
        value, = struct.unpack_from("<" + format, self.data, self.at)
        self.at += struct.calcsize(format)
        return value

    def leb(self, signed=False):
        value = shift = 0
        while True:
            byte = self.number("B")
            value |= (byte & 127) << shift
            shift += 7
            if not byte & 128:
                return value - (1 << shift) if signed and byte & 64 else value

    def pointer(self, encoding):
        if encoding == 0xff:
            return 0
        here = self.address + self.at
        format = {0: "Q", 2: "H", 3: "I", 4: "Q", 10: "h", 11: "i", 12: "q"}[encoding & 15]
        value = self.number(format)
        return (value + here if encoding & 0x70 == 0x10 else value) % 2 ** 64


class Tables:
    """The unwind tables of a loaded file: which bytes tell of which code."""
    loaded = {}

    def __init__(self, address, end):
        self.data = bytes(gdb.selected_inferior().read_memory(address, end - address))
        self.address, self.cies, fdes = address, {}, []
        r = Reader(self.data, address)
        while r.at + 4 <= len(self.data):
            n = r.number("I")
            if n == 0:
                break
            start, end = r.at, r.at + n
            cie = r.number("I")
            if cie:
                about = self.cie(start - cie)
                begin = r.pointer(about["encoding"])
                length = r.pointer(about["encoding"] & 15)
                if about["augmented"]:
                    skip = r.leb()
                    r.at += skip
                fdes.append((begin, begin + length, about, r.at, end))
            r.at = end
        self.fdes = sorted(fdes, key=lambda f: f[0])
        self.begins = [f[0] for f in self.fdes]

    def cie(self, at):
        if at not in self.cies:
            r = Reader(self.data, self.address, at)
            end = r.number("I") + at + 4
            r.at += 5
            zero = self.data.index(0, r.at)
            letters, r.at = self.data[r.at:zero].decode(), zero + 1
            about = {"code": r.leb(), "data": r.leb(True), "ra": r.leb(), "encoding": 0,
                     "augmented": letters.startswith("z")}
            if about["augmented"]:
                after = r.leb()
                after += r.at
                for letter in letters[1:]:
                    if letter == "R":
                        about["encoding"] = r.number("B")
                    elif letter == "P":
                        r.pointer(r.number("B"))
                    elif letter == "L":
                        r.number("B")
                r.at = after
            about["begin"], about["end"] = r.at, end
            self.cies[at] = about
        return self.cies[at]

    @staticmethod
    def of(pc):
        """The entry for pc, with its tables. None: no file has one."""
        for begin, end in re.findall(r"(0x[0-9a-f]+) - (0x[0-9a-f]+) is \.eh_frame(?: in .*)?$",
                                     gdb.execute("info files", to_string=True), re.M):
            key = (int(begin, 16), int(end, 16))
            if key not in Tables.loaded:
                Tables.loaded[key] = Tables(*key)
            t = Tables.loaded[key]
            i = bisect.bisect_right(t.begins, pc) - 1
            if i >= 0 and pc < t.fdes[i][1]:
                return t, t.fdes[i]
        return None

    def rules(self, fde, pc):
        """How the caller's registers are found: the CFA as (register, offset), and for each
        register that is saved its offset from there; "undefined" ends the stack."""
        begin, _, about, at, end = fde
        cfa, saved, kept, first = [7, 8], {}, [], {}

        def run(at, end, loc):
            nonlocal cfa, saved
            r = Reader(self.data, self.address, at)
            while r.at < end:
                op = r.number("B")
                low, high = op & 63, op >> 6
                if high == 1 or op in (2, 3, 4):
                    loc += (low if high == 1 else r.number("BHI"[op - 2])) * about["code"]
                    if loc > pc:
                        return
                elif high == 2:
                    saved[low] = r.leb() * about["data"]
                elif high == 3 or op == 6:
                    register = low if high == 3 else r.leb()
                    saved.pop(register, None)
                    if register in first:
                        saved[register] = first[register]
                elif op == 0 or op == 0x2d:
                    pass
                elif op == 5:
                    register = r.leb()
                    saved[register] = r.leb() * about["data"]
                elif op == 7:
                    saved[r.leb()] = "undefined"
                elif op == 8:
                    saved.pop(r.leb(), None)
                elif op == 10:
                    kept.append((list(cfa), dict(saved)))
                elif op == 11:
                    cfa, saved = kept.pop()
                elif op == 12:
                    cfa = [r.leb(), r.leb()]
                elif op == 13:
                    cfa[0] = r.leb()
                elif op == 14:
                    cfa[1] = r.leb()
                elif op == 0x2e:
                    r.leb()
                else:
                    raise gdb.GdbError("unwind tables that are not known here")

        run(about["begin"], about["end"], 0)
        first = dict(saved)
        run(at, end, begin)
        return cfa, saved


def frames_away(stack, context):
    """The frames of a stack that is away, innermost first: registers by their DWARF numbers."""
    x86 = "x86" in gdb.selected_inferior().architecture().name()
    sp, fp = (7, 6) if x86 else (31, 29)
    registers, pc, frames = {sp: context["sp"], fp: context["fp"]}, context["pc"], []
    while len(frames) < 200:
        frames.append({"sp": registers[sp], "fp": registers.get(fp, 0), "pc": pc})
        entry = Tables.of(pc - (len(frames) > 1))
        if entry is None:
            break
        tables, fde = entry
        cfa, saved = tables.rules(fde, pc - (len(frames) > 1))
        ra = fde[2]["ra"]
        if saved.get(ra) == "undefined" or cfa[0] not in registers:
            break
        base = registers[cfa[0]] + cfa[1]
        outer = dict(registers)
        try:
            for register, offset in saved.items():
                if offset != "undefined":
                    outer[register] = stack.word(base + offset)
        except gdb.MemoryError:
            break
        pc = outer.get(ra, 0)
        if not pc:
            break
        outer[sp] = base
        registers = outer
    return frames


# ------------------------------------------------------------------ goroutines

class Goroutine:
    def __init__(self, gp, stack=None):
        self.gp, self.stack = gp, stack or Stack()
        self.id = int(gp["id"])
        self.status = int(gp["status"])
        self.mp = gp["mp"]

    @staticmethod
    def all():
        """Every one that lives, by number."""
        regions, n = variable("regions", "stack"), int(variable("stacks", "stack")["n"])
        top = int(variable("top_bytes", "stack"))
        pointer = gdb.lookup_type("struct g").pointer()
        line = gdb.lookup_type("struct m").alignof
        try:
            grounds = variable("evacuation", "evacuate")["grounds"]
        except gdb.GdbError:
            grounds = None
        found = []
        for k in range(n):
            r = regions[k].dereference()
            base, slot, carved = address_of(r["base"]), int(r["slot_bytes"]), int(r["carved"])
            if carved == 0:
                continue
            ground = grounds[k] if grounds is not None else None
            memo = ground["memo"] if ground is not None and int(ground) else None
            state = bytes(gdb.selected_inferior().read_memory(address_of(r["state"]), carved))
            for i in range(carved):
                if state[i] & SLOT_STATE != SLOT_WARM:
                    continue
                at = base + (i + 1) * slot - top - i % COLOURS * COLOUR_LINES * line
                gp = gdb.Value(at).cast(pointer).dereference()
                stack = None
                if memo is not None and int(memo[i]["copies"]) and not bool(memo[i]["back"]):
                    stack = Stack(base + (i + 1) * slot, memo[i]["copies"])
                    gp = gdb.Value(stack.read(at, gp.type.sizeof), gp.type)
                g = Goroutine(gp, stack)
                if g.status_name() != "dead" and not g.is_internal():
                    found.append(g)
        return sorted(found, key=lambda g: g.id)

    @staticmethod
    def numbered(n):
        for g in Goroutine.all():
            if g.id == n:
                return g
        raise gdb.GdbError(f"there is no goroutine {n}")

    def status_name(self):
        names = {f.enumval: f.name for f in gdb.lookup_type("enum g_status").fields()}
        return names.get(self.status, "G_?")[2:].lower()

    def state(self):
        """As in goro's own dumps: what it waits for, or its status."""
        text = self.status_name()
        reason = int(self.gp["wait_reason"])
        if text == "waiting" and reason:
            text = reason_text(reason)
        if int(self.gp["lock_depth"]):
            text += ", locked to thread"
        name = self.gp["name"].string(errors="replace")
        return f'{text}, "{name}"' if name else text

    def thread(self):
        """The thread whose registers are the goroutine's; None: it is at rest."""
        if int(self.mp) == 0:
            return None
        tid = int(self.mp["tid"])
        for thread in gdb.selected_inferior().threads():
            if tid in thread.ptid[1:]:
                return thread
        return None

    def is_internal(self):
        return bool(self.gp["is_internal"])


REASONS = {     # WAIT_REASON_LIST: types.h
    "WAIT_CHAN_RECV": "chan receive", "WAIT_CHAN_SEND": "chan send",
    "WAIT_CHAN_RECV_NIL": "chan receive (nil chan)", "WAIT_CHAN_SEND_NIL": "chan send (nil chan)",
    "WAIT_SELECT_NO_CASES": "select (no cases)", "WAIT_MUTEX_LOCK": "sync.Mutex.Lock",
    "WAIT_RWMUTEX_RLOCK": "sync.RWMutex.RLock", "WAIT_RWMUTEX_LOCK": "sync.RWMutex.Lock",
    "WAIT_WAITGROUP_WAIT": "sync.WaitGroup.Wait", "WAIT_COND_WAIT": "sync.Cond.Wait",
    "WAIT_IO": "IO wait", "WAIT_RUN": "goro_run",
}


def reason_text(reason):
    names = {f.enumval: f.name for f in gdb.lookup_type("enum wait_reason").fields()}
    name = names.get(reason, "WAIT_?")
    return REASONS.get(name, name[5:].lower().replace("_", " "))


# ------------------------------------------------------------------- selection

REGISTERS = {"i386:x86-64": ("rsp", "rbp", "rip"), "aarch64": ("sp", "x29", "pc")}


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class Selected:
    """The goroutine at rest that the commands of gdb see, and the thread that stands for it."""
    frames = None       # its innermost frame, or all frames of a stack that is away
    sp = pc = 0         # of the thread's innermost frame
    thread = None
    number = 0


class Unwinder(gdb.unwinder.Unwinder):
    def __init__(self):
        super().__init__("goro")

    def __call__(self, frame):
        if Selected.frames is None or not is_here():
            return None
        names = REGISTERS.get(frame.architecture().name())
        if names is None:
            return None
        sp, pc = frame.read_register(names[0]), frame.read_register(names[2])
        # The innermost frame is the thread's own; those outside have other stack pointers.
        inner = [(Selected.sp, Selected.pc)] + [(f["sp"], f["pc"]) for f in Selected.frames]
        place = (int(sp) % 2 ** 64, int(pc) % 2 ** 64)
        if place not in inner[:-1]:
            return None
        info = frame.create_unwind_info(FrameId(sp, pc))
        outer = Selected.frames[inner.index(place)]
        for name, of_frame in zip(names, ("sp", "fp", "pc")):
            value = gdb.Value(outer[of_frame])
            info.add_saved_register(name, value.cast(frame.read_register(name).type))
        return info


class HideInnermost:
    """Leaves out the frame of the thread that stands for the goroutine."""
    name, priority, enabled = "goro", 100, True

    def filter(self, frames):
        for frame in frames:
            if Selected.frames is None or not is_here() or frame.inferior_frame().level() > 0:
                yield frame


def is_here():
    thread = gdb.selected_thread()
    return thread is not None and thread.num == Selected.thread


def forget(_event=None):
    Selected.number = 0
    if Selected.frames is not None:
        Selected.frames = None
        gdb.invalidate_cached_frames()


def select(g):
    """Makes g what the commands of gdb see. Its registers are in a thread or at rest."""
    forget()
    thread = g.thread()
    if thread is not None:
        thread.switch()
        gdb.newest_frame().select()
        Selected.number = g.id
        return
    if g.status_name() in ("running", "syscall"):
        raise gdb.GdbError(f"goroutine {g.id} runs on a thread that is not there any more")
    if gdb.selected_thread() is None:
        raise gdb.GdbError("there is no thread")
    innermost = gdb.newest_frame()
    names = REGISTERS[innermost.architecture().name()]
    Selected.sp = int(innermost.read_register(names[0])) % 2 ** 64
    Selected.pc = int(innermost.read_register(names[2])) % 2 ** 64
    rest = {name: address_of(g.gp["context"][name]) for name in ("sp", "fp", "pc")}
    Selected.frames = frames_away(g.stack, rest) if g.stack.is_away() else [rest]
    Selected.thread, Selected.number = gdb.selected_thread().num, g.id
    gdb.invalidate_cached_frames()
    try:
        outer = gdb.newest_frame().older()
    except gdb.error:
        outer = None
    if outer is None or not outer.is_valid():
        forget()
        raise gdb.GdbError(f"goroutine {g.id}: its stack cannot be read")
    outer.select()


class Kept:
    """Around a command: the thread, the frame and the goroutine are selected again after it."""
    def __enter__(self):
        self.thread, self.number = gdb.selected_thread(), Selected.number
        try:
            self.level = gdb.selected_frame().level()
        except gdb.error:
            self.level = 0

    def __exit__(self, *_):
        forget()
        if self.thread is not None and self.thread.is_valid():
            self.thread.switch()
        if self.number:
            try:
                select(Goroutine.numbered(self.number))
            except gdb.GdbError:
                return
        frame = gdb.newest_frame()
        while frame is not None and frame.level() < self.level:
            frame = frame.older()
        if frame is not None:
            frame.select()


# -------------------------------------------------------------------- commands

def place(frame):
    name = frame.name() or "??"
    sal = frame.find_sal()
    if sal.symtab is None:
        return f"{name} ()"
    return f"{name} () at {sal.symtab.filename}:{sal.line}"


def program_frame(limit=24):
    """The program's innermost frame among those of the selected goroutine: the caller of the
    outermost call of goro's."""
    frame = gdb.newest_frame()
    if Selected.frames is not None:
        frame = frame.older()
    first, found = frame, None
    for _ in range(limit):
        if frame is None:
            break
        if (frame.name() or "").startswith("goro_"):
            found = frame.older() or found
        frame = frame.older()
    return found or first


class InfoGoroutines(gdb.Command):
    """All goroutines: number, state, and where the program is in each.

With an argument, only those whose line has it: info goroutines chan receive"""
    def __init__(self):
        super().__init__("info goroutines", gdb.COMMAND_STATUS)

    def invoke(self, arg, from_tty):
        chosen = Selected.number
        with Kept():
            for g in Goroutine.all():
                try:
                    select(g)
                    at = place(program_frame())
                except (gdb.GdbError, gdb.error) as e:
                    at = f"({e})"
                mark = "*" if g.id == chosen else " "
                away = ", stack away" if g.stack.is_away() else ""
                line = f"{mark} {g.id:<5} {g.state() + away:<24} {at}"
                if arg in line:
                    print(line)


class GoroutineCommand(gdb.Command):
    """goroutine N [COMMAND], goroutine all COMMAND: in the frames of goroutines.

Without a command it selects goroutine N, until another one or another thread is selected
or the program goes on. goroutine 0 selects the thread again."""
    def __init__(self):
        super().__init__("goroutine", gdb.COMMAND_STACK, gdb.COMPLETE_COMMAND)

    def invoke(self, arg, from_tty):
        words = arg.split(None, 1)
        if not words:
            print(f"goroutine {Selected.number}" if Selected.number else "no goroutine is selected")
            return
        if words[0] == "all":
            if len(words) < 2:
                raise gdb.GdbError("goroutine all COMMAND")
            with Kept():
                for g in Goroutine.all():
                    self.run(g, words[1])
            return
        if not re.fullmatch("[0-9]+", words[0]):
            raise gdb.GdbError("goroutine N [COMMAND], or goroutine all COMMAND")
        number = int(words[0])
        if number == 0:
            forget()
            gdb.execute("frame 0")
        elif len(words) == 2:
            with Kept():
                self.run(Goroutine.numbered(number), words[1])
        else:
            g = Goroutine.numbered(number)
            select(g)
            program_frame().select()
            print(f"[goroutine {g.id} [{g.state()}]]")
            gdb.execute("frame")

    @staticmethod
    def run(g, command):
        print(f"\ngoroutine {g.id} [{g.state()}]:")
        try:
            select(g)
            gdb.execute(command)
        except (gdb.GdbError, gdb.error) as e:
            print(f"({e})")


# ------------------------------------------------------------------ in words

def plural(n, what):
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def as_private(value, name):
    """A public object as the structure of the runtime that it is."""
    return value.address.cast(gdb.lookup_type(name).pointer()).dereference()


def waiting_in(queue):
    numbers, w = [], queue["first"]
    while int(w) and len(numbers) < 100:
        numbers.append(str(int(w["gp"]["id"])))
        w = w["next"]
    return numbers


def wait(who, what):
    return f", {what} by goroutine {', '.join(who)}" if who else ""


def mutex_words(state):
    text = "locked" if state & 1 else "unlocked"
    if state & 4:
        text += ", starving"
    if state >> 3:
        text += f", {plural(state >> 3, 'goroutine')} waiting"
    return text


class Chan:
    def __init__(self, v):
        self.v = v

    def to_string(self):
        v = self.v
        size, n = int(v["elem_size"]), int(v["count"])
        text = f"channel of {size}-byte elements, "
        text += f"{n} of {int(v['capacity'])} buffered" if bool(v["buffered"]) else "unbuffered"
        if bool(v["closed"]):
            text += ", closed"
        return text + wait(waiting_in(v["recvq"]), "waited for") + \
            wait(waiting_in(v["sendq"]), "sent to")

    def children(self):
        v = self.v
        size, at, end = int(v["elem_size"]), int(v["recv_at"]), int(v["ring_bytes"])
        integer = {1: "unsigned char", 2: "unsigned short", 4: "int", 8: "long"}.get(size)
        element = gdb.lookup_type(integer) if integer else \
            gdb.lookup_type("unsigned char").array(max(size, 1) - 1)
        ring = address_of(v["ring"].address)
        for i in range(int(v["count"])):
            if size:
                yield f"[{i}]", gdb.Value(ring + at).cast(element.pointer()).dereference()
            at += size
            if at == end:
                at = 0


class Words:
    """An object that one line tells."""
    def __init__(self, text):
        self.text = text

    def to_string(self):
        return self.text


def print_g(v):
    g = Goroutine(v)
    return Words(f"goroutine {g.id} [{g.state()}]")


def print_mutex(v):
    return Words(mutex_words(int(as_private(v, "struct mutex")["state"])))


def print_rwmutex(v):
    rw = as_private(v, "struct rwmutex")
    readers, mark = int(rw["readers"]), 1 << 30
    writer = int(rw["writers"]["state"])
    text = []
    if readers >= mark:
        departing = int(rw["departing"])
        text.append(f"a writer waits for {plural(departing, 'reader')}" if 0 < departing < mark
                    else "write-locked")
    elif readers:
        text.append("read-locked " + plural(readers, "time"))
    else:
        text.append("unlocked")
    if writer >> 3:
        text.append(f"{plural(writer >> 3, 'writer')} waiting")
    return Words(", ".join(text))


def print_waitgroup(v):
    state = int(as_private(v, "struct waitgroup")["state"])
    counter, waiters = state >> 32, state & 0xffffffff
    return Words(f"counter {counter}" + (f", {plural(waiters, 'goroutine')} waiting" if waiters else ""))


def print_once(v):
    state = int(as_private(v, "struct once")["state"])
    return Words({0: "not done", 1: "done"}.get(state, "running"))


def print_cond(v):
    return Words("condition" + wait(waiting_in(as_private(v, "struct cond")["q"]), "waited for"))


def print_sema(v):
    s = as_private(v, "struct sema")
    return Words(f"{int(s['held'])} of {int(s['total'])} units held" +
                 (", goroutines waiting" if int(s["first"]) else ""))


def print_ctx(v):
    err, deadline = int(v["err"]), int(v["deadline"])
    text = {0: "not done", -125: "cancelled", -110: "deadline exceeded"}.get(err, f"done: {err}")
    if bool(v["never"]):
        text = "never done"
    if err and int(v["cause"]) != err:
        text += f", cause {int(v['cause'])}"
    if deadline != 2 ** 63 - 1:
        text += f", deadline {deadline} ns"
    return Words("context, " + text)


PRINTERS = {
    "goro_mutex": print_mutex, "goro_rwmutex": print_rwmutex, "goro_waitgroup": print_waitgroup,
    "goro_once": print_once, "goro_cond": print_cond, "goro_sema": print_sema,
    "goro_chan": Chan, "goro_ctx": print_ctx, "g": print_g,
}


class Printers(gdb.printing.PrettyPrinter):
    def __init__(self):
        super().__init__("goro")

    def __call__(self, value):
        t = value.type.unqualified()
        while t.name not in PRINTERS and t.code == gdb.TYPE_CODE_TYPEDEF:
            t = t.target().unqualified()
        printer = PRINTERS.get(t.name)
        if printer is None:
            return None
        try:
            return printer(value)
        except (gdb.error, gdb.GdbError):
            return None     # not initialised, or no debug information


# ----------------------------------------------------------------------- start

def load():
    """Once, however many files of the process have this in them."""
    gdb.goro_loaded = True
    gdb.printing.register_pretty_printer(None, Printers(), replace=True)
    gdb.unwinder.register_unwinder(None, Unwinder(), replace=True)
    gdb.frame_filters["goro"] = HideInnermost()
    gdb.events.cont.connect(forget)
    gdb.events.exited.connect(forget)
    InfoGoroutines()
    GoroutineCommand()


if not getattr(gdb, "goro_loaded", False):
    load()
