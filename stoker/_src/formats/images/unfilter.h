/* Reverses PNG's row filters, which filters.py describes. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint8_t nearest(int a, int b, int c) {
    int pa = b - c, pb = a - c, pc = pa + pb;
    pa = pa < 0 ? -pa : pa;
    pb = pb < 0 ? -pb : pb;
    pc = pc < 0 ? -pc : pc;
    /* Branch-free, because in photographs the selected neighbour is unpredictable. */
    int best = pb < pa ? b : a;
    int distance = pb < pa ? pb : pa;
    return (uint8_t)(pc < distance ? c : best);
}

static inline void paeth_row(uint8_t *out, const uint8_t *in, const uint8_t *above, ptrdiff_t size, ptrdiff_t step) {
    for (ptrdiff_t i = 0; i < step && i < size; i++) out[i] = (uint8_t)(in[i] + above[i]);
    for (ptrdiff_t i = step; i < size; i++) out[i] = (uint8_t)(in[i] + nearest(out[i - step], above[i], above[i - step]));
}

static inline void unfilter_row(int type, uint8_t *out, const uint8_t *in, const uint8_t *above, ptrdiff_t size, ptrdiff_t step) {
    ptrdiff_t head = step < size ? step : size;
    switch (type) {
    case 1:
        memcpy(out, in, head);
        for (ptrdiff_t i = step; i < size; i++) out[i] = (uint8_t)(in[i] + out[i - step]);
        break;
    case 2:
        for (ptrdiff_t i = 0; i < size; i++) out[i] = (uint8_t)(in[i] + above[i]);
        break;
    case 3:
        for (ptrdiff_t i = 0; i < head; i++) out[i] = (uint8_t)(in[i] + (above[i] >> 1));
        for (ptrdiff_t i = step; i < size; i++) out[i] = (uint8_t)(in[i] + ((out[i - step] + above[i]) >> 1));
        break;
    case 4: /* a constant step lets the compiler keep the neighbours in registers */
        if (step == 1) paeth_row(out, in, above, size, 1);
        else if (step == 3) paeth_row(out, in, above, size, 3);
        else if (step == 4) paeth_row(out, in, above, size, 4);
        else paeth_row(out, in, above, size, step);
        break;
    default:
        memcpy(out, in, size);
    }
}
