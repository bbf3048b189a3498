/* A closed-loop load generator for chat completions on loopback. One thread, epoll; the result is JSON on stdout.
 *
 * Every answer is checked: status 200; a stream has all its tokens, then [DONE], then the end of the body; a whole
 * answer is a chat.completion. Bounded by --count, by --seconds (nothing new starts after) and by --limit (gives up).
 * Delays compare the send time that the mock upstream writes into each chunk with the time of the read here.
 */
#define _GNU_SOURCE
#include <getopt.h>

#include "common.h"

enum { BATCH = 256, LINE = 4096, MAX_SAMPLES = 1 << 21 };
enum State { HEAD, LENGTH, CHUNK_SIZE, CHUNK_DATA, CHUNK_END, TRAILER, CLOSED };

typedef struct {
    int fd;              /* -1: not connected */
    int busy, used, sent_any, failed;
    enum State state;
    size_t left;         /* bytes to come of this chunk or body */
    Buf in, unsent;
    char line[LINE];
    size_t line_len;
    long tokens, usages, done;
    uint64_t written, first_token;
} Slot;

typedef struct {
    double *at;
    size_t len;
} Samples;

static struct {
    int port, stream, concurrency, expect_usage, abandon;
    long tokens, count;
    uint64_t stagger, seconds, limit;
    const char *path, *body;
} want = {.concurrency = 1, .tokens = 64, .count = 1L << 40, .seconds = 3600, .limit = 600, .path = "/v1/chat/completions", .body = "{}"};

static int ep, timer;
static Buf request, extra;
static Slot *slots;
static Samples ttft, delay, latency;
static long started, ended, active, errors, reconnects, chunks, events;
static uint64_t begin, last_end;
static char first_error[512];

static void take(Samples *s, double value) {
    if (s->len < MAX_SAMPLES) s->at[s->len++] = value;
}

static void complain(Slot *s, const char *format, ...) {
    if (s->failed) return;
    s->failed = 1;
    if (errors++) return;
    va_list args;
    va_start(args, format);
    vsnprintf(first_error, sizeof first_error, format, args);
    va_end(args);
    for (char *c = first_error; *c; c++)
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ') *c = '\'';
}

static void hang_up(Slot *s) {
    if (s->fd >= 0) close(s->fd);
    s->fd = -1, s->used = 0;
    s->in.len = s->unsent.len = 0;
}

static void dial(Slot *s) {
    struct sockaddr_in a = loopback(want.port);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->fd < 0 || connect(s->fd, (struct sockaddr *)&a, sizeof a) < 0) die("connect");
    fcntl(s->fd, F_SETFL, O_NONBLOCK);
    no_delay(s->fd);
    s->used = 0;
    watch(ep, EPOLL_CTL_ADD, s->fd, EPOLLIN, s);
}

static void push(Slot *s) {
    while (s->unsent.len) {
        s->written = now_ns(); /* before: on loopback the other side runs within send() */
        ssize_t n = send(s->fd, s->unsent.data, s->unsent.len, MSG_NOSIGNAL);
        if (n < 0) break;
        buf_drop(&s->unsent, (size_t)n);
    }
    if (s->unsent.len) watch(ep, EPOLL_CTL_MOD, s->fd, EPOLLIN | EPOLLOUT, s);
}

static void send_request(Slot *s) {
    if (s->fd < 0) dial(s);
    s->state = HEAD, s->busy = 1, s->failed = 0, s->sent_any = 0;
    s->line_len = 0, s->tokens = s->usages = s->done = 0, s->first_token = 0;
    s->in.len = s->unsent.len = 0;
    buf_add(&s->unsent, request.data, request.len);
    push(s);
}

static int more(uint64_t now) { return started < want.count && now - begin < want.seconds; }

static void next(Slot *s) {
    if (!more(now_ns())) return;
    started++, active++;
    send_request(s);
}

/* The answer is whole (or lost): judge it and go on. */
static void finish(Slot *s) {
    uint64_t now = now_ns();
    if (want.stream) {
        if (!s->done) complain(s, "a stream ended without [DONE] after %ld tokens", s->tokens);
        else if (s->tokens != want.tokens) complain(s, "a stream had %ld tokens of %ld", s->tokens, want.tokens);
        else if (want.expect_usage != (s->usages > 0)) complain(s, "a stream had %ld usage chunks", s->usages);
    } else if (!memmem(s->line, s->line_len, "\"chat.completion\"", 17)) {
        complain(s, "no completion: %.*s", (int)(s->line_len < 200 ? s->line_len : 200), s->line);
    }
    if (!s->failed) {
        take(&latency, (double)(now - s->written) / 1e6);
        if (s->first_token) take(&ttft, (double)(s->first_token - s->written) / 1e6);
    }
    if (s->failed || s->state == CLOSED) hang_up(s);
    ended++, active--;
    s->busy = 0, s->used = 1, last_end = now;
    next(s);
}

static void read_event(Slot *s, uint64_t now) {
    const char *line = s->line, *found;
    if (s->line_len < 6 || memcmp(line, "data: ", 6) != 0) return;
    events++;
    if (s->line_len >= 12 && memcmp(line, "data: [DONE]", 12) == 0) { s->done++; return; }
    if (s->done) complain(s, "an event after [DONE]");
    if (memmem(line, s->line_len, "\"usage\":{", 9)) s->usages++;
    if (!(found = memmem(line, s->line_len, "\"content\":\"", 11)) || found[11] == '"') return;
    s->tokens++, chunks++;
    if (!s->first_token) s->first_token = now;
    if ((found = memmem(line, s->line_len, "\"obfuscation\":\"", 15)))
        take(&delay, ((double)now - (double)strtoull(found + 15, NULL, 10)) / 1e6);
}

/* Decoded body bytes: lines of events, or the one JSON answer (kept as far as it fits). */
static void body(Slot *s, const char *bytes, size_t n, uint64_t now) {
    while (n) {
        const char *stop = want.stream ? memchr(bytes, '\n', n) : NULL;
        size_t part = stop ? (size_t)(stop - bytes) : n, room = LINE - s->line_len;
        memcpy(s->line + s->line_len, bytes, part < room ? part : room);
        s->line_len += part < room ? part : room;
        if (!stop) return;
        read_event(s, now);
        s->line_len = 0;
        bytes += part + 1, n -= part + 1;
    }
}

static int read_head(Slot *s) {
    char *end = memmem(s->in.data, s->in.len, "\r\n\r\n", 4);
    if (!end) return 0;
    const char *stop = end + 4, *length = header_value(s->in.data, stop, "content-length:");
    const char *coding = header_value(s->in.data, stop, "transfer-encoding:");
    if (s->in.len < 12 || memcmp(s->in.data + 9, "200", 3) != 0)
        complain(s, "%.*s", (int)(s->in.len < 400 ? s->in.len : 400), s->in.data);
    s->state = coding && strncasecmp(coding, "chunked", 7) == 0 ? CHUNK_SIZE : length ? LENGTH : CLOSED;
    s->left = length ? strtoul(length, NULL, 10) : 0;
    buf_drop(&s->in, (size_t)(stop - s->in.data));
    return 1;
}

/* Consumes a line of the chunked coding; NULL when it is not whole yet. */
static const char *coding_line(Slot *s, size_t *at) {
    char *from = s->in.data + *at, *stop = memchr(from, '\n', s->in.len - *at);
    if (!stop) return NULL;
    *at += (size_t)(stop - from) + 1;
    return from;
}

/* Runs the answer's bytes through the body decoder. 1: the answer is whole. */
static int decode(Slot *s, uint64_t now) {
    size_t at = 0, part;
    const char *line;
    int whole = s->state == LENGTH && s->left == 0;
    while (!whole && at < s->in.len) {
        if (s->state == CHUNK_SIZE) {
            if (!(line = coding_line(s, &at))) break;
            s->left = strtoul(line, NULL, 16);
            s->state = s->left ? CHUNK_DATA : TRAILER;
        } else if (s->state == CHUNK_END) {
            if (!coding_line(s, &at)) break;
            s->state = CHUNK_SIZE;
        } else if (s->state == TRAILER) {
            if (!(line = coding_line(s, &at))) break;
            whole = line[0] == '\r' || line[0] == '\n';
        } else {
            part = s->in.len - at;
            if (s->state != CLOSED && part > s->left) part = s->left;
            body(s, s->in.data + at, part, now);
            at += part, s->left -= s->state == CLOSED ? 0 : part;
            whole = s->state == LENGTH && !s->left;
            if (s->state == CHUNK_DATA && !s->left) s->state = CHUNK_END;
        }
    }
    buf_drop(&s->in, at);
    return whole;
}

static void lost(Slot *s) {
    /* A kept connection that the server closed while it was idle says nothing about the request: try it again. */
    int stale = s->used && !s->sent_any, ended_by_close = s->state == CLOSED;
    if (!s->busy || stale) {
        hang_up(s);
        reconnects++;
        if (s->busy) send_request(s);
        return;
    }
    if (!ended_by_close) complain(s, "the connection was closed within an answer, after %ld tokens", s->tokens);
    s->state = CLOSED;
    finish(s);
}

static void readable(Slot *s) {
    buf_room(&s->in, 65536);
    ssize_t n = recv(s->fd, s->in.data + s->in.len, s->in.cap - s->in.len, 0);
    uint64_t now = now_ns();
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (n <= 0) { lost(s); return; }
    if (!s->busy) { hang_up(s); return; }
    s->in.len += (size_t)n, s->sent_any = 1;
    if (s->state == HEAD && !read_head(s)) return;
    if (decode(s, now)) finish(s);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void show(const char *name, Samples *s) {
    if (!s->len) { printf(", \"%s\": null", name); return; }
    qsort(s->at, s->len, sizeof *s->at, by_size);
    printf(", \"%s\": {\"count\": %zu, \"p50\": %.4f, \"p95\": %.4f, \"p99\": %.4f, \"max\": %.4f}", name, s->len, s->at[s->len / 2],
           s->at[s->len * 95 / 100], s->at[s->len * 99 / 100], s->at[s->len - 1]);
}

static int report(void) {
    double spent = (double)((last_end ? last_end : now_ns()) - begin) / 1e9;
    if (active && !want.abandon) {
        if (!errors) snprintf(first_error, sizeof first_error, "%ld answers were not finished in time", active);
        errors += active;
    }
    printf("{\"answers\": %ld, \"unfinished\": %ld, \"errors\": %ld, \"first_error\": ", ended, active, errors);
    printf(errors ? "\"%s\"" : "null", first_error);
    printf(", \"reconnects\": %ld, \"chunks\": %ld, \"events\": %ld, \"seconds\": %.4f", reconnects, chunks, events, spent);
    show("ttft_ms", &ttft), show("delay_ms", &delay), show("latency_ms", &latency);
    printf("}\n");
    return errors ? 1 : 0;
}

static void options(int argc, char **argv) {
    static const struct option LONG[] = {
        {"port", 1, 0, 'p'}, {"mode", 1, 0, 'm'}, {"concurrency", 1, 0, 'c'}, {"count", 1, 0, 'n'}, {"seconds", 1, 0, 's'},
        {"limit", 1, 0, 'l'}, {"path", 1, 0, 'P'}, {"body", 1, 0, 'b'}, {"header", 1, 0, 'H'}, {"tokens", 1, 0, 't'},
        {"stagger-us", 1, 0, 'g'}, {"usage", 0, 0, 'u'}, {"abandon", 0, 0, 'a'}, {0, 0, 0, 0}};
    for (int o; (o = getopt_long(argc, argv, "", LONG, NULL)) != -1;) {
        if (o == 'p') want.port = atoi(optarg);
        else if (o == 'm') want.stream = strcmp(optarg, "stream") == 0;
        else if (o == 'c') want.concurrency = atoi(optarg);
        else if (o == 'n') want.count = atol(optarg);
        else if (o == 's') want.seconds = strtoull(optarg, NULL, 10);
        else if (o == 'l') want.limit = strtoull(optarg, NULL, 10);
        else if (o == 'P') want.path = optarg;
        else if (o == 'b') want.body = optarg;
        else if (o == 't') want.tokens = atol(optarg);
        else if (o == 'g') want.stagger = strtoull(optarg, NULL, 10) * 1000;
        else if (o == 'u') want.expect_usage = 1;
        else if (o == 'a') want.abandon = 1;
        else if (o == 'H') buf_add(&extra, optarg, strlen(optarg)), buf_add(&extra, "\r\n", 2);
        else exit(2);
    }
    if (want.port < 1 || want.concurrency < 1) { fprintf(stderr, "--port and --concurrency are needed\n"); exit(2); }
    want.seconds *= 1000000000ull, want.limit *= 1000000000ull;
}

static void compose(void) {
    char head[1024];
    buf_add(&extra, "", 1);
    int n = snprintf(head, sizeof head, "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n%s\r\n",
                     want.path, want.port, strlen(want.body), extra.data);
    if (n >= (int)sizeof head) { fprintf(stderr, "the headers are too long\n"); exit(2); }
    buf_add(&request, head, (size_t)n);
    buf_add(&request, want.body, strlen(want.body));
}

int main(int argc, char **argv) {
    struct epoll_event ready[BATCH];
    Samples *all[] = {&ttft, &delay, &latency};
    options(argc, argv);
    compose();
    allow_many_files();
    ep = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    watch(ep, EPOLL_CTL_ADD, timer, EPOLLIN, &timer);
    slots = calloc((size_t)want.concurrency, sizeof *slots);
    for (int i = 0; i < 3; i++)
        if (!(all[i]->at = malloc(MAX_SAMPLES * sizeof(double)))) die("malloc");
    for (int i = 0; i < want.concurrency; i++) slots[i].fd = -1;
    begin = now_ns();
    for (int fresh = 0;;) {
        uint64_t now = now_ns();
        for (; fresh < want.concurrency && now >= begin + (uint64_t)fresh * want.stagger; fresh++) next(&slots[fresh]);
        int waiting = fresh < want.concurrency && more(now);
        if ((!active && !waiting) || now - begin > want.limit) break;
        if (want.abandon && now - begin > want.seconds) break;
        uint64_t wake = waiting ? begin + (uint64_t)fresh * want.stagger : now + 200000000ull;
        arm(timer, wake);
        int n = epoll_wait(ep, ready, BATCH, -1);
        if (n < 0 && errno != EINTR) die("epoll_wait");
        for (int i = 0; i < n; i++) {
            Slot *s = ready[i].data.ptr;
            uint64_t ticks;
            if ((void *)s == &timer) { if (read(timer, &ticks, sizeof ticks) < 0 && errno != EAGAIN) die("timer"); continue; }
            if (s->fd >= 0 && ready[i].events & EPOLLOUT) {
                watch(ep, EPOLL_CTL_MOD, s->fd, EPOLLIN, s);
                push(s);
            }
            if (s->fd >= 0 && ready[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP)) readable(s);
        }
    }
    return report();
}
