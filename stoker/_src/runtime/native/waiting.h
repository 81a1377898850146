/* How long OpenMP threads poll for work before they sleep.
 *
 * Waking a sleeping thread takes 20 to 50 microseconds, so on a quiet machine threads should poll until the next op needs them. If other
 * processes want the processors, a polling thread keeps them, and perhaps the very thread it waits for, from running. libgomp reads
 * the length of polling (GOMP_SPINCOUNT, see base/loading.py) once, but it polls much less while there are more OpenMP threads than
 * processors. That can be brought about: a thread of its own opens a parallel region of many threads once and then sleeps. Its team
 * counts until that thread ends.
 *
 * The sign of a busy machine is the number of times the kernel took the processor from a thread of this process.
 */
#ifndef STOKER_WAITING_H
#define STOKER_WAITING_H

#include <stdint.h>

#if defined(_OPENMP) && defined(__linux__)
#include <omp.h>
#include <pthread.h>
#include <sys/resource.h>

static const int64_t LOOK_EVERY = 25000000;     /* ns between two looks at the number of interruptions */
static const int64_t LONGEST_GAP = 400000000;   /* ns after which the number since the last look says nothing */
static const int64_t CALM = 2000000000;         /* ns without interruptions after which threads poll again */
static const int64_t FEWEST_INTERRUPTIONS = 3;  /* in one look, and one in each MEAN_GAP */
static const int64_t MEAN_GAP = 10000000;

/* One sleeping team. It ends when `over` is set. */
static pthread_mutex_t team_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t team_wakes = PTHREAD_COND_INITIALIZER;
static unsigned long team_number = 0, team_over = 0; /* number of the last team that was started, and of the last that must end */

static void *keep_team(void *number) {
#pragma omp parallel num_threads(omp_get_num_procs() + 1)
    { __asm__ volatile("" ::: "memory"); }
    pthread_mutex_lock(&team_lock);
    while (team_over < (unsigned long)(uintptr_t)number) pthread_cond_wait(&team_wakes, &team_lock);
    pthread_mutex_unlock(&team_lock);
    return NULL;
}

/* Lets threads poll for long or only briefly. Called with the GIL held. Returns whether they poll for long. */
static int poll_long(int wanted) {
    int polls = team_over == team_number;
    if (wanted == polls || pthread_mutex_trylock(&team_lock)) return polls; /* a child may inherit the lock from a forked parent */
    if (wanted) {
        team_over = team_number;
        pthread_cond_broadcast(&team_wakes);
        pthread_mutex_unlock(&team_lock);
        return 1;
    }
    pthread_t thread;
    if (!pthread_create(&thread, NULL, keep_team, (void *)(uintptr_t)(team_number + 1))) {
        team_number++;
        pthread_detach(thread);
    }
    pthread_mutex_unlock(&team_lock);
    return team_over == team_number;
}

/* Decides by the interruptions since the last look. Called with the GIL held. */
static void look(int64_t time) {
    static int64_t next = 0, last = 0, calm_from = 0;
    static long interruptions = 0;
    if (time < next) return;
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage)) return;
    int64_t count = usage.ru_nivcsw - interruptions, elapsed = time - last;
    interruptions = usage.ru_nivcsw;
    last = time;
    next = time + LOOK_EVERY;
    if (elapsed > LONGEST_GAP) return;
    if (count >= FEWEST_INTERRUPTIONS && count * MEAN_GAP >= elapsed) {
        calm_from = time + CALM;
        poll_long(0);
    } else if (time >= calm_from) {
        poll_long(1);
    }
}
#else
static int poll_long(int wanted) {
    (void)wanted;
    return 1;
}
static void look(int64_t time) { (void)time; }
#endif

#endif
