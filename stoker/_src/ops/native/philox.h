/* Philox-4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011). */
#ifndef STOKER_PHILOX_H
#define STOKER_PHILOX_H

#include <stdint.h>

typedef struct {
    uint64_t key;
    uint64_t low; /* the 128-bit counter */
    uint64_t high;
} Stream;

static inline Stream stream_at(Stream stream, uint64_t blocks) {
    Stream moved = {stream.key, stream.low + blocks, stream.high};
    if (moved.low < stream.low) moved.high++;
    return moved;
}

static inline void philox_block(Stream stream, uint32_t out[4]) {
    uint32_t c0 = (uint32_t)stream.low, c1 = (uint32_t)(stream.low >> 32);
    uint32_t c2 = (uint32_t)stream.high, c3 = (uint32_t)(stream.high >> 32);
    uint32_t k0 = (uint32_t)stream.key, k1 = (uint32_t)(stream.key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)c0 * 0xD2511F53u;
        uint64_t p1 = (uint64_t)c2 * 0xCD9E8D57u;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

/* Reads the words of the blocks one at a time. */
typedef struct {
    Stream stream;
    uint32_t words[4];
    int used;
} Words;

static inline Words words_from(Stream stream) {
    Words words = {stream, {0, 0, 0, 0}, 4};
    return words;
}

static inline uint32_t next_word(Words *words) {
    if (words->used == 4) {
        philox_block(words->stream, words->words);
        words->stream = stream_at(words->stream, 1);
        words->used = 0;
    }
    return words->words[words->used++];
}

#endif
