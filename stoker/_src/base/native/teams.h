/* How many threads a parallel region of libgomp asks for. */
#ifndef STOKER_TEAMS_H
#define STOKER_TEAMS_H

#include <stdint.h>

#ifdef _OPENMP
#include <omp.h>
#else
static inline int omp_get_max_threads(void) { return 1; }
#endif

/* One thread, or all that the caller allows, even if there is work for fewer: libgomp ends the threads that a region does not ask for, and
 * creates them again for the next one that does, which takes longer than most regions. */
static inline int team_for(int used) {
    int all = omp_get_max_threads();
    return used <= 1 ? 1 : used < all ? all : used;
}

/* How many of the caller's threads work that is worth `shares` of them is divided among. */
static inline int threads_for(int64_t shares, int threads) { return shares < 1 ? 1 : shares < threads ? (int)shares : threads; }

#endif
