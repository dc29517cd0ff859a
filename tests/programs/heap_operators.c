// build: -lstdc++
// argv: N. Calls the C++ operators new and delete by their mangled names, each form N times, and prints what is to be
// counted, as heap_sequence does. Every fourth block stays.
#include "heap_truth.h"

extern const char _ZSt7nothrow;
#define NOTHROW &_ZSt7nothrow
#define ALIGNED (void *)64

void *_Znwm(size_t), *_Znam(size_t), *_ZnwmRKSt9nothrow_t(size_t, const void *),
    *_ZnamRKSt9nothrow_t(size_t, const void *), *_ZnwmSt11align_val_t(size_t, void *),
    *_ZnamSt11align_val_tRKSt9nothrow_t(size_t, void *, const void *);
void _ZdlPv(void *), _ZdaPv(void *), _ZdlPvm(void *, size_t), _ZdaPvRKSt9nothrow_t(void *, const void *),
    _ZdlPvSt11align_val_t(void *, void *), _ZdaPvSt11align_val_tRKSt9nothrow_t(void *, void *, const void *);

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 0;
    for (long i = 0; i < 6 * n; i++) {
        size_t size = (size_t)i % 777 + 1;
        /* glibc's C++ library rounds up what is aligned: aligned_alloc wants that. */
        if (i % 6 >= 4) size = (size / 64 + 1) * 64;
        void *at = i % 6 == 0   ? _Znwm(size)
                   : i % 6 == 1 ? _Znam(size)
                   : i % 6 == 2 ? _ZnwmRKSt9nothrow_t(size, NOTHROW)
                   : i % 6 == 3 ? _ZnamRKSt9nothrow_t(size, NOTHROW)
                   : i % 6 == 4 ? _ZnwmSt11align_val_t(size, ALIGNED)
                                : _ZnamSt11align_val_tRKSt9nothrow_t(size, ALIGNED, NOTHROW);
        if (!at) fail("new");
        gave(at, size);
        if (i / 6 % 4 == 0) continue;
        took(look(at, size));
        switch (i % 6) {
        case 0: _ZdlPvm(at, size); break;
        case 1: _ZdaPv(at); break;
        case 2: _ZdlPv(at); break;
        case 3: _ZdaPvRKSt9nothrow_t(at, NOTHROW); break;
        case 4: _ZdlPvSt11align_val_t(at, ALIGNED); break;
        default: _ZdaPvSt11align_val_tRKSt9nothrow_t(at, ALIGNED, NOTHROW); break;
        }
    }
    report();
    return 0;
}
