/* Drives a fuzz target where libFuzzer is not at hand: mutates inputs, and keeps those that reach new code (the
 * compiler calls back at every basic block, -fsanitize-coverage=trace-pc).
 *
 *   drive SECONDS INPUTS FILE...     until both have passed, from these inputs on; a failing one is left in crash-input
 *   drive -- FILE...                 run these inputs once */
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "input.h"

enum { LONGEST = 4096, CORPUS = 4096, MAP = 1 << 16 };

static uint8_t seen[MAP], input[LONGEST];
static size_t input_size;
static int fresh_code;
static struct {
    uint8_t *bytes;
    size_t size;
} corpus[CORPUS];
static size_t kept;
static uint64_t state;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));
void __sanitizer_cov_trace_pc(void) {
    uintptr_t pc = (uintptr_t)__builtin_return_address(0);
    uint8_t *place = &seen[(pc ^ pc >> 16) % MAP];
    fresh_code |= !*place;
    *place = 1;
}

static void save(void) { /* on the way down */
    FILE *out = fopen("crash-input", "wb");
    if (!out) return;
    fwrite(input, 1, input_size, out);
    fclose(out);
}

static void stopped(int signal_number) {
    save();
    fprintf(stderr, signal_number == SIGALRM ? "an input takes more than ten seconds\n" : "aborted\n");
    _exit(1);
}

static uint64_t roll(uint64_t n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % n;
}

static void mutate(void) {
    static const uint8_t pointed[] = {0, 1, 2, 0x7F, 0x80, 0xFF};
    input_size = 0;
    if (kept && roll(16)) {
        size_t which = (size_t)roll(kept);
        input_size = corpus[which].size;
        memcpy(input, corpus[which].bytes, input_size);
    }
    for (uint64_t n = 1 + roll(8); n > 0; n--) {
        size_t at = input_size ? (size_t)roll(input_size) : 0, many = 1 + (size_t)roll(32);
        switch (roll(5)) {
        case 0: /* insert */
            if (input_size + many > LONGEST) break;
            memmove(input + at + many, input + at, input_size - at);
            for (size_t i = 0; i < many; i++) input[at + i] = (uint8_t)roll(256);
            input_size += many;
            break;
        case 1: /* remove */
            if (many > input_size - at) break;
            memmove(input + at, input + at + many, input_size - at - many);
            input_size -= many;
            break;
        case 2: /* splice in a piece of another */
            if (!kept || !input_size) break;
            size_t other = (size_t)roll(kept);
            size_t from = corpus[other].size ? (size_t)roll(corpus[other].size) : 0;
            for (size_t i = 0; i < 4 * many && at + i < input_size && from + i < corpus[other].size; i++)
                input[at + i] = corpus[other].bytes[from + i];
            break;
        case 3:
            if (input_size) input[at] = pointed[roll(sizeof pointed)];
            break;
        default:
            if (input_size) input[at] = (uint8_t)roll(256);
        }
    }
}

static void keep(void) {
    if (kept == CORPUS) return;
    corpus[kept].bytes = fresh(input_size);
    corpus[kept].size = input_size;
    memcpy(corpus[kept++].bytes, input, input_size);
}

static int load(const char *name) {
    FILE *in = fopen(name, "rb");
    if (!in) return 0; /* a pattern that matched nothing */
    input_size = fread(input, 1, LONGEST, in);
    fclose(in);
    return 1;
}

static void replay(const char *name) {
    if (!load(name)) {
        perror(name);
        exit(2);
    }
    LLVMFuzzerTestOneInput(input, input_size);
    printf("%s: fine\n", name);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--") == 0) {
        for (int i = 2; i < argc; i++) replay(argv[i]);
        return 0;
    }
    uint64_t seed = (uint64_t)time(NULL), runs = 0, least = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    for (int i = 3; i < argc; i++)
        if (load(argv[i])) keep();
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(save);
    signal(SIGABRT, stopped);
    signal(SIGALRM, stopped);
    state = (seed + 1) * 0x9E3779B97F4A7C15u;
    const time_t end = time(NULL) + (argc > 1 ? atol(argv[1]) : 60); /* the kept inputs have been run */
    while (time(NULL) < end || runs < least) {
        alarm(10);
        for (int i = 0; i < 64; i++, runs++) {
            mutate();
            fresh_code = 0;
            LLVMFuzzerTestOneInput(input, input_size);
            if (fresh_code) keep();
        }
    }
    printf("%llu inputs, %zu kept for reaching new code, seed %llu\n", (unsigned long long)runs, kept,
           (unsigned long long)seed);
    return 0;
}
