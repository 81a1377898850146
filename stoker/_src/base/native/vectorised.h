/* VECTORISED functions are compiled for several instruction sets, of which the machine's best is taken when the module is loaded. */
#ifndef STOKER_VECTORISED_H
#define STOKER_VECTORISED_H

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define VECTORISED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VECTORISED
#endif

#endif
