# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Arrays to any Arrow consumer, and streams of arrays from any, without an Arrow library: capsules of its C interfaces.

A node describes an array: (format, name, length, null_count, buffers, children). Buffers are None or anything with
the buffer protocol, which stays exported until the consumer releases the array.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.errno cimport ENOMEM
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from mqindex._native.arrow cimport (
    ARROW_FLAG_NULLABLE, ArrowArray, ArrowArrayStream, ArrowSchema, HeldArray,
)


def export_array(node):
    """The two capsules of `__arrow_c_array__`: (schema, array)."""
    return schema_capsule(node), array_capsule(node)


def export_stream(node):
    """The capsule of `__arrow_c_stream__`: one array, then the end."""
    cdef ArrowArrayStream* stream = <ArrowArrayStream*> calloc(1, sizeof(ArrowArrayStream))
    if stream == NULL:
        raise MemoryError
    try:
        capsule = PyCapsule_New(stream, "arrow_array_stream", &free_stream)
    except BaseException:
        free(stream)
        raise
    owner = _StreamOwner(node)
    Py_INCREF(owner)
    stream.private_data = <void*> owner
    stream.get_schema = &stream_schema
    stream.get_next = &stream_next
    stream.get_last_error = &stream_error
    stream.release = &release_stream
    return capsule


cdef dict _TYPES = {
    b"n": "null", b"b": "bool", b"c": "int8", b"C": "uint8", b"s": "int16", b"S": "uint16", b"i": "int32",
    b"I": "uint32", b"l": "int64", b"L": "uint64", b"e": "float16", b"f": "float32", b"g": "float64", b"z": "bytes",
    b"Z": "bytes", b"vz": "bytes", b"u": "strings", b"U": "strings", b"vu": "strings", b"+l": "lists", b"+L": "lists",
    b"+s": "structs", b"+m": "maps",
}
cdef dict _PARAMETRIC = {
    b"td": "dates", b"tt": "times of day", b"ts": "timestamps", b"tD": "durations", b"d:": "decimals",
}


cdef str arrow_type(const char* form):
    """What people call a type that the C interface has letters for."""
    cdef bytes letters = form
    found = _TYPES.get(letters) or _PARAMETRIC.get(letters[:2])
    return found or f"the Arrow format {letters.decode(errors='replace')!r}"


# ---- schema

cdef class _SchemaOwner:
    """What an ArrowSchema points to."""

    cdef bytes format
    cdef bytes name
    cdef ArrowSchema* structs
    cdef ArrowSchema** children

    def __cinit__(self, Py_ssize_t n_children):
        self.structs = <ArrowSchema*> calloc(n_children + 1, sizeof(ArrowSchema))
        self.children = <ArrowSchema**> calloc(n_children + 1, sizeof(ArrowSchema*))
        if self.structs == NULL or self.children == NULL:
            raise MemoryError
        for i in range(n_children):
            self.children[i] = &self.structs[i]

    def __dealloc__(self):
        free(self.structs)
        free(self.children)


cdef int fill_schema(ArrowSchema* out, node) except -1:
    form, name, _, _, _, children = node
    cdef _SchemaOwner owner = _SchemaOwner(len(children))
    owner.format = form.encode()
    owner.name = name.encode()
    memset(out, 0, sizeof(ArrowSchema))
    out.format = owner.format
    out.name = owner.name
    out.flags = ARROW_FLAG_NULLABLE  # always: batches of one column must have one type
    out.children = owner.children
    Py_INCREF(owner)
    out.private_data = <void*> owner
    out.release = &release_schema
    try:
        for i in range(len(children)):
            fill_schema(owner.children[i], children[i])
            out.n_children = i + 1
    except BaseException:
        release_schema(out)
        raise
    if form == "+m":  # neither an entry nor its key may be null
        out.children[0].flags = 0
        out.children[0].children[0].flags = 0
    return 0


cdef void release_schema(ArrowSchema* schema) noexcept with gil:
    for i in range(schema.n_children):
        if schema.children[i].release != NULL:  # a consumer may have moved it away
            schema.children[i].release(schema.children[i])
    schema.release = NULL
    Py_DECREF(<object> schema.private_data)


cdef object schema_capsule(node):
    cdef ArrowSchema* schema = <ArrowSchema*> calloc(1, sizeof(ArrowSchema))
    if schema == NULL:
        raise MemoryError
    try:
        capsule = PyCapsule_New(schema, "arrow_schema", &free_schema)
    except BaseException:
        free(schema)
        raise
    fill_schema(schema, node)
    return capsule


cdef void free_schema(object capsule) noexcept:
    cdef ArrowSchema* schema = <ArrowSchema*> PyCapsule_GetPointer(capsule, "arrow_schema")
    if schema.release != NULL:
        schema.release(schema)
    free(schema)


# ---- array

cdef class _ArrayOwner:
    """What an ArrowArray points to."""

    cdef Py_buffer* views
    cdef Py_ssize_t n_views
    cdef const void** buffers
    cdef ArrowArray* structs
    cdef ArrowArray** children

    def __cinit__(self, buffers, Py_ssize_t n_children):
        cdef Py_ssize_t n_buffers = len(buffers)
        self.views = <Py_buffer*> calloc(n_buffers + 1, sizeof(Py_buffer))
        self.buffers = <const void**> calloc(n_buffers + 1, sizeof(void*))
        self.structs = <ArrowArray*> calloc(n_children + 1, sizeof(ArrowArray))
        self.children = <ArrowArray**> calloc(n_children + 1, sizeof(ArrowArray*))
        if self.views == NULL or self.buffers == NULL or self.structs == NULL or self.children == NULL:
            raise MemoryError
        for i in range(n_children):
            self.children[i] = &self.structs[i]
        for i in range(n_buffers):
            if buffers[i] is not None:
                PyObject_GetBuffer(buffers[i], &self.views[self.n_views], PyBUF_SIMPLE)
                self.buffers[i] = self.views[self.n_views].buf
                self.n_views += 1

    def __dealloc__(self):
        for i in range(self.n_views):
            PyBuffer_Release(&self.views[i])
        free(self.views)
        free(self.buffers)
        free(self.structs)
        free(self.children)


cdef int fill_array(ArrowArray* out, node) except -1:
    _, _, length, null_count, buffers, children = node
    cdef _ArrayOwner owner = _ArrayOwner(buffers, len(children))
    memset(out, 0, sizeof(ArrowArray))
    out.length = length
    out.null_count = null_count
    out.n_buffers = len(buffers)
    out.buffers = owner.buffers
    out.children = owner.children
    Py_INCREF(owner)
    out.private_data = <void*> owner
    out.release = &release_array
    try:
        for i in range(len(children)):
            fill_array(owner.children[i], children[i])
            out.n_children = i + 1
    except BaseException:
        release_array(out)
        raise
    return 0


cdef void release_array(ArrowArray* array) noexcept with gil:
    for i in range(array.n_children):
        if array.children[i].release != NULL:
            array.children[i].release(array.children[i])
    array.release = NULL
    Py_DECREF(<object> array.private_data)


cdef object array_capsule(node):
    cdef ArrowArray* array = <ArrowArray*> calloc(1, sizeof(ArrowArray))
    if array == NULL:
        raise MemoryError
    try:
        capsule = PyCapsule_New(array, "arrow_array", &free_array)
    except BaseException:
        free(array)
        raise
    fill_array(array, node)
    return capsule


cdef void free_array(object capsule) noexcept:
    cdef ArrowArray* array = <ArrowArray*> PyCapsule_GetPointer(capsule, "arrow_array")
    if array.release != NULL:
        array.release(array)
    free(array)


# ---- stream

cdef class _StreamOwner:
    """A stream of one array."""

    cdef object node
    cdef bint ended
    cdef bytes error

    def __cinit__(self, node):
        self.node = node
        self.error = b""


cdef int stream_schema(ArrowArrayStream* stream, ArrowSchema* out) noexcept with gil:
    cdef _StreamOwner owner = <_StreamOwner> stream.private_data
    try:
        fill_schema(out, owner.node)
        return 0
    except BaseException as error:
        owner.error = str(error).encode(errors="replace")
        return ENOMEM


cdef int stream_next(ArrowArrayStream* stream, ArrowArray* out) noexcept with gil:
    cdef _StreamOwner owner = <_StreamOwner> stream.private_data
    memset(out, 0, sizeof(ArrowArray))
    if owner.ended:
        return 0
    try:
        fill_array(out, owner.node)
        owner.ended = True
        return 0
    except BaseException as error:
        owner.error = str(error).encode(errors="replace")
        return ENOMEM


cdef const char* stream_error(ArrowArrayStream* stream) noexcept with gil:
    return (<_StreamOwner> stream.private_data).error


cdef void release_stream(ArrowArrayStream* stream) noexcept with gil:
    stream.release = NULL
    Py_DECREF(<object> stream.private_data)


cdef void free_stream(object capsule) noexcept:
    cdef ArrowArrayStream* stream = <ArrowArrayStream*> PyCapsule_GetPointer(capsule, "arrow_array_stream")
    if stream.release != NULL:
        stream.release(stream)
    free(stream)


# ---- streams of others

@cython.final
cdef class HeldArray:
    """An array taken from a stream: released with its last user."""

    def __dealloc__(self):
        if self.array.release != NULL:
            self.array.release(&self.array)


@cython.final
cdef class ArrayStream:
    """Reads a stream of `what`, given as the capsule of `__arrow_c_stream__`: its schema, then its arrays."""

    def __cinit__(self, object capsule, str what):
        self.stream = <ArrowArrayStream*> PyCapsule_GetPointer(capsule, "arrow_array_stream")
        self.capsule, self.what = capsule, what
        self.check(self.stream.get_schema(self.stream, &self.schema))

    def __dealloc__(self):
        if self.schema.release != NULL:
            self.schema.release(&self.schema)

    cdef int check(self, int code) except -1:
        cdef const char* text
        if code == 0:
            return 0
        text = self.stream.get_last_error(self.stream)
        said = "" if text == NULL else text.decode(errors="replace")
        raise OSError(code, f"the Arrow stream of the {self.what} failed: {said}")

    cdef HeldArray next(self):
        """The next array; None: there are no more."""
        cdef HeldArray held = HeldArray()
        self.check(self.stream.get_next(self.stream, &held.array))
        return None if held.array.release == NULL else held
