/* Filters as the convolutions of gradients take them. */
#ifndef STOKER_FILTERS_H
#define STOKER_FILTERS_H

#include "windows.h"

#include "../../base/native/tiles.h"

static inline int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

#ifdef HAS_TILES
/* The filter with which the gradient of the results is convolved: to[taps, outputs, channels], the last window element first. */
static void turn(float *to, const float *filter, int64_t taps, int64_t channels, int64_t outputs) {
    for (int64_t t = 0; t < taps; t++) {
        const float *from = filter + (taps - 1 - t) * channels * outputs;
        float *each = to + t * channels * outputs;
        for (int64_t c = 0; c < channels; c += LANES)
            for (int64_t o = 0; o < outputs; o += LANES)
                if (c + LANES <= channels && o + LANES <= outputs)
                    transpose_16(each + o * channels + c, channels, from + c * outputs + o, outputs);
                else
                    for (int64_t x = c; x < at_most(channels, c + LANES); x++)
                        for (int64_t y = o; y < at_most(outputs, o + LANES); y++) each[y * channels + x] = from[x * outputs + y];
    }
}
#endif

#endif
