/* Inflates a zlib stream (RFC 1950, RFC 1951) whose size is known. It refuses every stream that is not entirely valid; what to make of such
 * streams is left to zlib. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MOST_BITS = 15, QUICK_BITS = 10, SYMBOLS = 288 };

typedef struct {
    uint16_t quick[1 << QUICK_BITS]; /* by the next bits: symbol << 4 | length of its code; 0 for longer codes */
    uint16_t count[MOST_BITS + 1];   /* codes of each length */
    uint16_t symbols[SYMBOLS];       /* in the order of their codes */
} huffman;

typedef struct {
    const uint8_t *at, *end;
    uint64_t held; /* the next bits, lowest first */
    int bits;      /* how many of them are valid; negative after reading past the end */
} bit_source;

static inline void refill(bit_source *source) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (source->bits >= 0 && source->end - source->at >= 8) {
        uint64_t word;
        memcpy(&word, source->at, 8);
        source->held |= word << source->bits;
        source->at += (63 - source->bits) >> 3;
        source->bits |= 56;
        return;
    }
#endif
    while (source->bits >= 0 && source->bits <= 56 && source->at < source->end) {
        source->held |= (uint64_t)*source->at++ << source->bits;
        source->bits += 8;
    }
}

static inline unsigned take_bits(bit_source *source, int count) {
    unsigned found = (unsigned)(source->held & ((1u << count) - 1));
    source->held >>= count;
    source->bits -= count;
    return found;
}

/* Returns whether the lengths describe a complete code, or, where `may_be_partial`, at most one symbol. */
static int make_huffman(huffman *made, const uint8_t *lengths, int symbols, int may_be_partial) {
    uint16_t place[MOST_BITS + 2], next[MOST_BITS + 2];
    memset(made->count, 0, sizeof made->count);
    for (int i = 0; i < symbols; i++) made->count[lengths[i]]++;
    made->count[0] = 0;
    int left = 1, used = 0;
    for (int length = 1; length <= MOST_BITS; length++) {
        left = (left << 1) - made->count[length];
        used += made->count[length];
        if (left < 0) return 0;
    }
    if (left > 0 && !(may_be_partial && (used == 0 || (used == 1 && made->count[1] == 1)))) return 0;
    unsigned code = 0;
    place[1] = 0;
    for (int length = 1; length <= MOST_BITS; length++) {
        next[length] = (uint16_t)code;
        place[length + 1] = (uint16_t)(place[length] + made->count[length]);
        code = (code + made->count[length]) << 1;
    }
    memset(made->quick, 0, sizeof made->quick);
    for (int i = 0; i < symbols; i++) {
        int length = lengths[i];
        if (!length) continue;
        made->symbols[place[length]++] = (uint16_t)i;
        unsigned own = next[length]++, reversed = 0;
        if (length > QUICK_BITS) continue;
        for (int bit = 0; bit < length; bit++) reversed |= ((own >> bit) & 1) << (length - 1 - bit);
        for (unsigned k = reversed; k < 1u << QUICK_BITS; k += 1u << length) made->quick[k] = (uint16_t)(i << 4 | length);
    }
    return 1;
}

/* The next symbol, or -1. */
static inline int decode_symbol(const huffman *table, bit_source *source) {
    unsigned entry = table->quick[source->held & ((1u << QUICK_BITS) - 1)];
    if (entry) {
        take_bits(source, entry & 15);
        return (int)(entry >> 4);
    }
    int code = 0, first = 0, index = 0;
    for (int length = 1; length <= MOST_BITS; length++) {
        code |= (int)(source->held >> (length - 1)) & 1;
        int count = table->count[length];
        if (code - first < count) {
            take_bits(source, length);
            return table->symbols[index + code - first];
        }
        index += count;
        first = (first + count) << 1;
        code <<= 1;
    }
    return -1;
}

static int fixed_tables(huffman *literals, huffman *distances) {
    uint8_t lengths[SYMBOLS];
    for (int i = 0; i < SYMBOLS; i++) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    if (!make_huffman(literals, lengths, SYMBOLS, 0)) return 0;
    memset(lengths, 5, 32);
    return make_huffman(distances, lengths, 32, 0);
}

static int read_tables(bit_source *source, huffman *literals, huffman *distances) {
    static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[320] = {0};
    refill(source);
    int literal_count = 257 + (int)take_bits(source, 5), distance_count = 1 + (int)take_bits(source, 5);
    int given = 4 + (int)take_bits(source, 4);
    if (literal_count > 286 || distance_count > 30) return 0;
    for (int i = 0; i < given; i++) {
        refill(source);
        lengths[order[i]] = (uint8_t)take_bits(source, 3);
    }
    if (source->bits < 0 || !make_huffman(literals, lengths, 19, 0)) return 0;
    memset(lengths, 0, sizeof lengths);
    int total = literal_count + distance_count;
    for (int i = 0; i < total;) {
        refill(source);
        int symbol = decode_symbol(literals, source), times = 1, value = symbol;
        if (symbol < 0) return 0;
        if (symbol >= 16) {
            if (symbol == 16 && i == 0) return 0;
            value = symbol == 16 ? lengths[i - 1] : 0;
            times = symbol == 16 ? 3 + (int)take_bits(source, 2)
                  : symbol == 17 ? 3 + (int)take_bits(source, 3) : 11 + (int)take_bits(source, 7);
        }
        if (source->bits < 0 || times > total - i) return 0;
        memset(lengths + i, value, times);
        i += times;
    }
    if (!lengths[256]) return 0;
    uint8_t of_distances[32];
    memcpy(of_distances, lengths + literal_count, distance_count);
    return make_huffman(literals, lengths, literal_count, 0) && make_huffman(distances, of_distances, distance_count, 1);
}

/* Returns the new position in `out`, or -1. */
static ptrdiff_t inflate_block(bit_source *source, const huffman *literals, const huffman *distances, uint8_t *out, ptrdiff_t at, ptrdiff_t size) {
    static const uint16_t base[29] = {3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static const uint16_t far[30] = {1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    for (;;) {
        refill(source);
        int symbol = decode_symbol(literals, source);
        if (symbol < 0 || source->bits < 0) return -1;
        if (symbol < 256) {
            if (at == size) return -1;
            out[at++] = (uint8_t)symbol;
            continue;
        }
        if (symbol == 256) return at;
        if (symbol > 285) return -1;
        ptrdiff_t length = base[symbol - 257] + (ptrdiff_t)take_bits(source, extra[symbol - 257]);
        int code = decode_symbol(distances, source);
        if (code < 0 || code > 29) return -1;
        ptrdiff_t distance = far[code] + (ptrdiff_t)take_bits(source, code < 2 ? 0 : (code >> 1) - 1);
        if (source->bits < 0 || distance > at || length > size - at) return -1;
        uint8_t *target = out + at;
        if (distance >= length) memcpy(target, target - distance, length);
        else if (distance == 1) memset(target, target[-1], length);
        else for (ptrdiff_t i = 0; i < length; i++) target[i] = target[i - distance];
        at += length;
    }
}

static uint32_t adler32(const uint8_t *data, ptrdiff_t size) {
    uint32_t low = 1, high = 0;
    while (size > 0) {
        ptrdiff_t part = size < 5552 ? size : 5552; /* the most bytes before the sums can overflow */
        size -= part;
        for (; part > 0; part--) {
            low += *data++;
            high += low;
        }
        low %= 65521;
        high %= 65521;
    }
    return high << 16 | low;
}

/* Returns whether `in` is a valid stream of exactly `size` bytes, which are then in `out`. */
static int inflate_exactly(const uint8_t *in, ptrdiff_t length, uint8_t *out, ptrdiff_t size) {
    if (length < 6 || (in[0] & 15) != 8 || in[0] >> 4 > 7 || in[1] & 32 || (in[0] << 8 | in[1]) % 31) return 0;
    bit_source source = {in + 2, in + length, 0, 0};
    huffman literals, distances;
    ptrdiff_t at = 0;
    for (int is_last = 0; !is_last;) {
        refill(&source);
        is_last = (int)take_bits(&source, 1);
        int kind = (int)take_bits(&source, 2);
        if (source.bits < 0 || kind == 3) return 0;
        if (kind == 0) {
            source.at -= source.bits >> 3; /* whole bytes that were not used are read again */
            source.held = 0;
            source.bits = 0;
            if (source.end - source.at < 4) return 0;
            ptrdiff_t count = source.at[0] | source.at[1] << 8;
            if (count != ((source.at[2] | source.at[3] << 8) ^ 0xFFFF) || count > source.end - source.at - 4 || count > size - at) return 0;
            memcpy(out + at, source.at + 4, count);
            source.at += 4 + count;
            at += count;
            continue;
        }
        if (!(kind == 1 ? fixed_tables(&literals, &distances) : read_tables(&source, &literals, &distances))) return 0;
        at = inflate_block(&source, &literals, &distances, out, at, size);
        if (at < 0) return 0;
    }
    const uint8_t *sum = source.at - (source.bits >> 3);
    if (at != size || source.end - sum < 4) return 0;
    return adler32(out, size) == ((uint32_t)sum[0] << 24 | sum[1] << 16 | sum[2] << 8 | sum[3]);
}
