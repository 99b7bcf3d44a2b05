# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Keys of any origin as one batch that can be hashed without the GIL."""

cimport cython
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.tuple cimport PyTuple_GET_ITEM
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset, strcmp

from mqindex._native.arrow cimport ArrayStream, ArrowArray, ArrowSchema, HeldArray, arrow_type
from mqindex._native.keys cimport (
    Chunk,
    KeyBatch,
    hash_of,
    mqi_key_hash,
    str_hash,
)
from mqindex._native.memory cimport Block, Pinned, integers, new_block, strided, target_of


cdef extern from "mqi_hash.h" nogil:
    const char* MQI_HASH_KERNEL
    void mqi_hash_offsets32(const uint8_t* data, const int32_t* offsets, size_t n, uint32_t seed, int32_t* out) noexcept
    void mqi_hash_offsets64(const uint8_t* data, const int64_t* offsets, size_t n, uint32_t seed, int32_t* out) noexcept
    void mqi_hash_views(
        const uint8_t* views, const uint8_t** buffers, size_t n, uint32_t seed, int32_t* out) noexcept
    void mqi_hash_fixed_bytes(
        const uint8_t* data, Py_ssize_t stride, size_t width, size_t n, uint32_t seed, int32_t* out) noexcept
    void mqi_hash_fixed_ucs4(
        const uint8_t* data, Py_ssize_t stride, size_t width, size_t n, uint32_t seed, int32_t* out) noexcept


cdef extern from "mqi_slot.h" nogil:
    uint64_t mqi_slot_inverse(uint32_t hash_slot_num) noexcept
    uint32_t mqi_slot(uint64_t slot_inverse, uint32_t hash_slot_num, int32_t key_hash) noexcept


cdef extern from *:
    """
    #define MQI_PREFETCH(p) __builtin_prefetch(p)
    """
    void MQI_PREFETCH(const void* p) noexcept


cdef enum:
    HASHES      # int32 key hashes, finished
    OFFSETS32
    OFFSETS64
    VIEWS
    INDICES8    # into the hashes of a dictionary
    INDICES16
    INDICES32
    INDICES64
    FIXED_BYTES
    FIXED_UCS4

cdef enum:
    AHEAD = 12  # str objects that are prefetched


cdef object _numpy = None


cdef object numpy():
    global _numpy
    if _numpy is None:
        import numpy as _numpy
    return _numpy


def kernels():
    """The name of the hash kernel that was compiled in."""
    return {"hash": MQI_HASH_KERNEL.decode()}


def key_hash(object key, /):
    """Java's `String.hashCode` of `key`, a whole `topic#key`, made non-negative as an index file stores it: int.

    Source: RocketMQ 4.9.3 `store/index/IndexFile.indexKeyHashMethod`.

    >>> key_hash("TopicTest#MessageKey")
    638347386
    """
    return hash_of(key)


cdef int refuse_key(object key) except -1:
    raise TypeError(f"key: expected str, got {type(key).__name__}")


def hashes_to_slots(object hashes, uint32_t hash_slot_num):
    """Turn each hash of an int32 array into its slot."""
    cdef Pinned pinned = integers(hashes, sizeof(int32_t))
    cdef int32_t* values = <int32_t*> pinned.view.buf
    cdef uint64_t inverse
    cdef Py_ssize_t i
    if hash_slot_num == 0 or pinned.view.readonly:
        raise ValueError("expected hashes to be written to, and 1 slot or more")
    inverse = mqi_slot_inverse(hash_slot_num)
    with nogil:
        for i in range(pinned.n):
            values[i] = mqi_slot(inverse, hash_slot_num, values[i])


def seed_of(str topic):
    """What the hash of `topic#key` starts from; 0 without a topic."""
    return 0 if topic is None else str_hash("#", str_hash(topic, 0))


cdef class KeyBatch:
    """Keys in order, in any number of chunks. Thread-safe once built: nothing changes any more."""

    def __cinit__(self, seed=0):
        self.seed = seed
        self.owners = []

    def __dealloc__(self):
        free(self.chunks)

    def __len__(self):
        return self.length

    cdef int add(self, Chunk chunk) except -1:
        cdef Chunk* chunks
        cdef Py_ssize_t room
        if chunk.n == 0:
            return 0
        if self.n_chunks == self.room:
            room = 2 * self.room + 1
            chunks = <Chunk*> realloc(self.chunks, room * sizeof(Chunk))
            if chunks == NULL:
                raise MemoryError
            self.chunks = chunks
            self.room = room
        chunk.start = self.length
        self.chunks[self.n_chunks] = chunk
        self.n_chunks += 1
        self.length += chunk.n
        return 0

    cdef int32_t* add_hashes(self, Py_ssize_t n) except NULL:
        """Append a chunk of finished hashes and return where the caller writes them."""
        cdef Block memory = new_block(n * sizeof(int32_t))
        cdef Chunk chunk
        memset(&chunk, 0, sizeof(Chunk))
        chunk.kind = HASHES
        chunk.n = n
        chunk.data = memory.data
        self.owners.append(memory)
        self.add(chunk)
        return <int32_t*> memory.data

    cdef void fill(self, Py_ssize_t start, Py_ssize_t n, int32_t* out) noexcept nogil:
        """Hashes of the keys [start, start + n), which must exist."""
        cdef Py_ssize_t low = 0
        cdef Py_ssize_t high = self.n_chunks
        cdef Py_ssize_t middle, skip, some
        while high - low > 1:
            middle = (low + high) // 2
            if self.chunks[middle].start <= start:
                low = middle
            else:
                high = middle
        while n > 0:
            skip = start - self.chunks[low].start
            some = self.chunks[low].n - skip
            if some > n:
                some = n
            fill_chunk(&self.chunks[low], skip, some, self.seed, out)
            out += some
            start += some
            n -= some
            low += 1

    def hashes(self):
        """All hashes as an int32 array."""
        out = numpy().empty(self.length, numpy().int32)
        cdef Pinned pinned = target_of(out)
        with nogil:
            self.fill(0, self.length, <int32_t*> pinned.view.buf)
        return out

    def add_sequence(self, object keys):
        """Append a list or tuple of str, hashed now."""
        cdef Py_ssize_t n = len(keys)
        cdef Py_ssize_t i
        if n == 0:
            return
        cdef int32_t* out = self.add_hashes(n)
        if isinstance(keys, tuple):
            for i in range(n):
                if i + AHEAD < n:
                    MQI_PREFETCH(<const void*> PyTuple_GET_ITEM(keys, i + AHEAD))
                out[i] = hash_item(<object> PyTuple_GET_ITEM(keys, i), i, self.seed)
            return
        with cython.critical_section(keys):
            if PyList_GET_SIZE(keys) != n:
                raise ValueError("keys: the list changed its size meanwhile")
            for i in range(n):
                if i + AHEAD < n:
                    MQI_PREFETCH(<const void*> PyList_GET_ITEM(keys, i + AHEAD))
                out[i] = hash_item(<object> PyList_GET_ITEM(keys, i), i, self.seed)

    def add_fixed(self, object array, bint ucs4):
        """Append a one-dimensional array of NumPy's U (aligned, native order) or S text."""
        cdef Pinned held = strided(array)
        cdef Chunk chunk
        memset(&chunk, 0, sizeof(Chunk))
        chunk.kind = FIXED_UCS4 if ucs4 else FIXED_BYTES
        chunk.n = held.view.shape[0]
        chunk.data = held.view.buf
        chunk.step = held.view.strides[0]
        chunk.width = held.view.itemsize // 4 if ucs4 else held.view.itemsize
        self.owners.append(held)
        self.add(chunk)

    def add_array(self, object schema, object array):
        """Append an Arrow array, given as the two capsules of `__arrow_c_array__`."""
        cdef ArrowSchema* of = <ArrowSchema*> PyCapsule_GetPointer(schema, "arrow_schema")
        cdef ArrowArray* source = <ArrowArray*> PyCapsule_GetPointer(array, "arrow_array")
        self.owners.append(schema)
        self.owners.append(array)
        add_arrow(self, of, source)

    def add_stream(self, object capsule):
        """Append every array of an Arrow stream."""
        cdef ArrayStream stream = ArrayStream(capsule, "keys")
        cdef HeldArray held
        while (held := stream.next()) is not None:
            self.owners.append(held)
            add_arrow(self, &stream.schema, &held.array)


cdef inline int32_t hash_item(object item, Py_ssize_t i, uint32_t seed) except -1:
    if not isinstance(item, str):
        refuse_item(item, i)
    return mqi_key_hash(str_hash(item, seed))


cdef int refuse_item(object item, Py_ssize_t i) except -1:
    if item is None or item != item or type(item).__name__ == "NAType":
        refuse_null(i)
    raise TypeError(f"keys: expected str, got {type(item).__name__} at position {i}")


cdef int refuse_null(Py_ssize_t i) except -1:
    raise ValueError(f"keys: null at position {i}")


cdef void fill_chunk(const Chunk* c, Py_ssize_t skip, Py_ssize_t n, uint32_t seed, int32_t* out) noexcept nogil:
    cdef const int32_t* values = <const int32_t*> c.offsets
    cdef Py_ssize_t i
    if c.kind == HASHES:
        memcpy(out, <const int32_t*> c.data + skip, n * sizeof(int32_t))
    elif c.kind == OFFSETS32:
        mqi_hash_offsets32(<const uint8_t*> c.data, <const int32_t*> c.offsets + skip, n, seed, out)
    elif c.kind == OFFSETS64:
        mqi_hash_offsets64(<const uint8_t*> c.data, <const int64_t*> c.offsets + skip, n, seed, out)
    elif c.kind == VIEWS:
        mqi_hash_views(<const uint8_t*> c.data + 16 * skip, <const uint8_t**> c.buffers, n, seed, out)
    elif c.kind == FIXED_BYTES:
        mqi_hash_fixed_bytes(<const uint8_t*> c.data + skip * c.step, c.step, c.width, n, seed, out)
    elif c.kind == FIXED_UCS4:
        mqi_hash_fixed_ucs4(<const uint8_t*> c.data + skip * c.step, c.step, c.width, n, seed, out)
    else:
        for i in range(n):
            out[i] = values[index_at(c, skip + i)]


cdef inline int64_t index_at(const Chunk* c, Py_ssize_t i) noexcept nogil:
    # Signed and unsigned indices alike: a batch holds only such as are below the dictionary's length.
    if c.kind == INDICES8:
        return (<const uint8_t*> c.data)[i]
    if c.kind == INDICES16:
        return (<const uint16_t*> c.data)[i]
    if c.kind == INDICES32:
        return (<const uint32_t*> c.data)[i]
    return (<const int64_t*> c.data)[i]


cdef inline bint is_null(const uint8_t* bitmap, int64_t i) noexcept nogil:
    return bitmap != NULL and not (bitmap[i >> 3] >> (i & 7)) & 1


cdef inline const uint8_t* bitmap_of(const ArrowArray* array) noexcept nogil:
    if array.null_count == 0:  # -1: not counted
        return NULL
    return <const uint8_t*> array.buffers[0]


cdef int64_t first_null(const ArrowArray* array) noexcept nogil:
    """Position of the first null, -1: there is none."""
    cdef const uint8_t* bitmap = bitmap_of(array)
    cdef int64_t i
    if bitmap == NULL:
        return -1
    for i in range(array.length):
        if is_null(bitmap, array.offset + i):
            return i
    return -1


cdef int text_chunk(const char* form, const ArrowArray* array, Chunk* chunk) except -1:
    """Describe an array of text; `TypeError` for any other."""
    memset(chunk, 0, sizeof(Chunk))
    chunk.n = array.length
    if strcmp(form, b"u") == 0 or strcmp(form, b"z") == 0:
        chunk.kind = OFFSETS32
        chunk.offsets = <const int32_t*> array.buffers[1] + array.offset
        chunk.data = array.buffers[2]
    elif strcmp(form, b"U") == 0 or strcmp(form, b"Z") == 0:
        chunk.kind = OFFSETS64
        chunk.offsets = <const int64_t*> array.buffers[1] + array.offset
        chunk.data = array.buffers[2]
    elif strcmp(form, b"vu") == 0 or strcmp(form, b"vz") == 0:
        chunk.kind = VIEWS
        chunk.data = <const uint8_t*> array.buffers[1] + 16 * array.offset
        chunk.buffers = &array.buffers[2]
    else:
        raise TypeError(f"keys: expected strings, got {arrow_type(form)}")
    return 0


cdef int index_kind(const char* form) except -1:
    cdef dict kinds = {
        b"c": INDICES8, b"C": INDICES8, b"s": INDICES16, b"S": INDICES16,
        b"i": INDICES32, b"I": INDICES32, b"l": INDICES64, b"L": INDICES64,
    }
    kind = kinds.get(<bytes> form)
    if kind is None:
        raise TypeError(f"keys: expected dictionary indices, got {arrow_type(form)}")
    return kind


cdef int add_arrow(KeyBatch batch, const ArrowSchema* schema, const ArrowArray* array) except -1:
    cdef Chunk chunk
    cdef int64_t null
    if strcmp(schema.format, b"n") == 0:  # of `pa.array([])`, too: no keys, or nothing but nulls
        return 0 if array.length == 0 else refuse_null(batch.length)
    if schema.dictionary == NULL:
        text_chunk(schema.format, array, &chunk)
    elif array.dictionary == NULL or array.length == 0:
        return 0
    else:
        index_chunk(batch, schema, array, &chunk)
    with nogil:
        null = first_null(array)
    if null >= 0:
        refuse_null(batch.length + null)
    batch.add(chunk)
    return 0


cdef int index_chunk(KeyBatch batch, const ArrowSchema* schema, const ArrowArray* array, Chunk* chunk) except -1:
    """Describe dictionary-encoded keys: the dictionary is hashed now, once."""
    cdef const ArrowArray* words = array.dictionary
    cdef Chunk text
    cdef int64_t bad = -1
    cdef int64_t i, index
    cdef const uint8_t* valid = bitmap_of(words)
    cdef const uint8_t* here = bitmap_of(array)
    cdef Block memory = new_block(words.length * sizeof(int32_t))
    cdef uint32_t seed = batch.seed
    cdef int size
    if schema.dictionary.dictionary != NULL:
        raise TypeError("keys: a dictionary of a dictionary is not supported")
    text_chunk(schema.dictionary.format, words, &text)
    memset(chunk, 0, sizeof(Chunk))
    chunk.kind = index_kind(schema.format)
    size = 1 << (chunk.kind - INDICES8)
    chunk.n = array.length
    chunk.data = <const uint8_t*> array.buffers[1] + array.offset * size
    chunk.offsets = memory.data
    batch.owners.append(memory)
    with nogil:
        # The hash of a null word is never read: an index that leads to one is refused below.
        if valid == NULL:
            fill_chunk(&text, 0, text.n, seed, <int32_t*> memory.data)
        else:
            for i in range(text.n):
                if not is_null(valid, words.offset + i):
                    fill_chunk(&text, i, 1, seed, <int32_t*> memory.data + i)
        for i in range(array.length):
            if is_null(here, array.offset + i):
                bad = i
                break
            index = index_at(chunk, i)
            if index < 0 or index >= words.length or is_null(valid, words.offset + index):
                bad = i
                break
    if bad >= 0:
        if not is_null(here, array.offset + bad):
            index = index_at(chunk, bad)
            if index < 0 or index >= words.length:
                raise ValueError(f"keys: index {index} outside the dictionary at position {batch.length + bad}")
        refuse_null(batch.length + bad)
    return 0
