/* What the mock upstream and the load generator share: clock, byte buffers, non-blocking loopback sockets. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    char *data;
    size_t len, cap;
} Buf;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void die(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(2);
}

static void buf_room(Buf *b, size_t more) {
    if (b->len + more <= b->cap) return;
    size_t cap = b->cap ? b->cap : 1024;
    while (cap < b->len + more) cap *= 2;
    b->data = realloc(b->data, cap);
    if (!b->data) die("realloc");
    b->cap = cap;
}

static void buf_add(Buf *b, const void *bytes, size_t n) {
    buf_room(b, n);
    memcpy(b->data + b->len, bytes, n);
    b->len += n;
}

static void buf_drop(Buf *b, size_t n) {
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
}

/* Every socket talks to 127.0.0.1 and nowhere else. */
static struct sockaddr_in loopback(int port) {
    struct sockaddr_in a = {0};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = htons((uint16_t)port);
    return a;
}

static void no_delay(int fd) {
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void watch(int ep, int op, int fd, uint32_t events, void *who) {
    struct epoll_event e = {.events = events, .data.ptr = who};
    if (epoll_ctl(ep, op, fd, &e) < 0) die("epoll_ctl");
}

/* epoll_wait counts in milliseconds, which would bunch chunks of neighbouring streams; a timerfd does not. */
static void arm(int timer, uint64_t due) {
    struct itimerspec t = {0};
    t.it_value.tv_sec = (time_t)(due / 1000000000ull);
    t.it_value.tv_nsec = (long)(due % 1000000000ull);
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &t, NULL);
}

static void allow_many_files(void) {
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}

/* The value of a header in a head that ends with a blank line; NULL when absent. `name` is lower case with colon. */
static const char *header_value(const char *head, const char *end, const char *name) {
    size_t n = strlen(name);
    for (const char *line = head; line < end;) {
        if ((size_t)(end - line) > n && strncasecmp(line, name, n) == 0) {
            for (line += n; line < end && *line == ' '; line++) {}
            return line;
        }
        const char *next = memchr(line, '\n', (size_t)(end - line));
        if (!next) return NULL;
        line = next + 1;
    }
    return NULL;
}
#endif
