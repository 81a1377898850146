/* Reads the protocol buffer wire format from untrusted bytes.
 *
 * A Span is the unread rest of the input. Every function consumes bytes from its front, never reads past its end, and
 * returns false if the expected item is missing. The position within the Span is then unspecified.
 *
 *   message   := field*
 *   field     := tag payload         tag = varint (field_number << 3 | wire_type)
 *   payload   := varint              wire_type 0
 *              | 8 bytes             wire_type 1
 *              | varint n, n bytes   wire_type 2 (text, bytes, messages, packed numbers)
 *              | 4 bytes             wire_type 5
 */
#ifndef STOKER_WIRE_H
#define STOKER_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  const uint8_t *at;
  const uint8_t *end;
} Span;

static inline size_t span_size(Span span) { return (size_t)(span.end - span.at); }

/* Reads up to ten bytes of seven bits each, low bits first. Bits past the 64th are dropped, as in protobuf. */
static inline bool read_varint(Span *in, uint64_t *value) {
  if (in->at < in->end && *in->at < 0x80) { /* nearly all varints are one byte */
    *value = *in->at++;
    return true;
  }
  uint64_t result = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (in->at == in->end) return false;
    uint8_t byte = *in->at++;
    result |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *value = result;
      return true;
    }
  }
  return false;
}

/* Reads a length and that many bytes. The length is compared with the remaining size before it is added to a pointer.
 * As in TensorFlow, tags and lengths are 32-bit varints, so higher bits are dropped. */
static inline bool read_chunk(Span *in, Span *chunk) {
  uint64_t length;
  if (!read_varint(in, &length)) return false;
  length &= UINT32_MAX;
  if (length > span_size(*in)) return false;
  chunk->at = in->at;
  chunk->end = in->at + length;
  in->at = chunk->end;
  return true;
}

/* Like read_chunk, but a chunk whose length exceeds the remaining bytes (or is 2^31 or more) ends at the end of its
 * container. TensorFlow enters nested messages in this way. */
static inline bool enter_chunk(Span *in, Span *chunk) {
  uint64_t length;
  if (!read_varint(in, &length)) return false;
  length &= UINT32_MAX;
  if (length > INT32_MAX || length > span_size(*in)) length = span_size(*in);
  chunk->at = in->at;
  chunk->end = in->at + length;
  in->at = chunk->end;
  return true;
}

/* Consumes a one-byte tag if it is next. */
static inline bool take_tag(Span *in, uint8_t tag) {
  if (in->at == in->end || *in->at != tag) return false;
  in->at++;
  return true;
}

/* Reads a one-byte tag, which must be `tag`, and its chunk. */
static inline bool read_tagged_chunk(Span *in, uint8_t tag, Span *chunk) {
  return take_tag(in, tag) && read_chunk(in, chunk);
}

static inline bool skip_bytes(Span *in, size_t count) {
  if (span_size(*in) < count) return false;
  in->at += count;
  return true;
}

/* Skips the payload of an unknown field. Groups (wire types 3 and 4) are rejected. */
static inline bool skip_payload(Span *in, uint32_t tag) {
  uint64_t ignored;
  Span chunk;
  switch (tag & 7) {
    case 0: return read_varint(in, &ignored);
    case 1: return skip_bytes(in, 8);
    case 2: return enter_chunk(in, &chunk);
    case 5: return skip_bytes(in, 4);
    default: return false;
  }
}

#endif
