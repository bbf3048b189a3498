/* A mock OpenAI chat provider on loopback: paced SSE streams, or a whole completion at once. One thread, epoll.
 *
 * POST any path. Body fields: "stream", "include_usage", and "mock_tokens", "mock_interval_us", "mock_first_us" for the
 * pace (defaults 64, 20000, and the interval); "mock_in_step" puts the chunks of all streams on the same beats. Each
 * content chunk carries its send time in "obfuscation" (monotonic ns), so that a reader on the same machine can tell
 * the relay's delay. GET answers the counters as JSON.
 */
#define _GNU_SOURCE
#include "common.h"

enum { MAX_HEAD = 65536, MAX_BODY = 64 << 20, MAX_PENDING = 4 << 20, BATCH = 256 };

typedef struct Conn {
    int fd;
    Buf in, out;
    int streaming, usage, writing, dead;
    long tokens, sent;
    uint64_t interval, due, id;
    size_t slot; /* place in the timer heap, 1-based; 0: not in it */
    struct Conn *next_dead;
} Conn;

static int ep, timer;
static Conn **heap;
static size_t heap_len, heap_cap;
static Conn *graveyard;
static unsigned long connections, open_streams, streams, finished, aborted, chunks, requests;

static const char *WORDS[] = {" the", " stream", " of", " tokens", " arrives", " one", " chunk", " at",
                              " a",   " time",   ",",   " paced",  " by",      " a",   " quiet", " clock"};

static void heap_put(size_t i, Conn *c) {
    heap[i] = c;
    c->slot = i;
}

static void sift_up(size_t i, Conn *c) {
    for (; i > 1 && heap[i / 2]->due > c->due; i /= 2) heap_put(i, heap[i / 2]);
    heap_put(i, c);
}

static void sift_down(size_t i, Conn *c) {
    for (size_t kid; (kid = 2 * i) <= heap_len; i = kid) {
        if (kid < heap_len && heap[kid + 1]->due < heap[kid]->due) kid++;
        if (heap[kid]->due >= c->due) break;
        heap_put(i, heap[kid]);
    }
    heap_put(i, c);
}

static void heap_add(Conn *c) {
    if (heap_len + 2 > heap_cap) {
        heap_cap = heap_cap ? heap_cap * 2 : 256;
        heap = realloc(heap, heap_cap * sizeof *heap);
        if (!heap) die("realloc");
    }
    sift_up(++heap_len, c);
}

static void heap_remove(Conn *c) {
    size_t i = c->slot;
    if (!i) return;
    Conn *last = heap[heap_len--];
    c->slot = 0;
    if (last == c) return;
    if (i > 1 && heap[i / 2]->due > last->due) sift_up(i, last);
    else sift_down(i, last);
}

static void drop(Conn *c) {
    if (c->dead) return;
    c->dead = 1;
    if (c->streaming) aborted++, open_streams--;
    heap_remove(c);
    close(c->fd);
    connections--;
    c->next_dead = graveyard;
    graveyard = c;
}

/* Freed after the batch: a later event of the same batch may still name it. */
static void bury(void) {
    while (graveyard) {
        Conn *c = graveyard;
        graveyard = c->next_dead;
        free(c->in.data);
        free(c->out.data);
        free(c);
    }
}

static void want_write(Conn *c, int on) {
    if (c->writing == on) return;
    c->writing = on;
    watch(ep, EPOLL_CTL_MOD, c->fd, EPOLLIN | EPOLLRDHUP | (on ? EPOLLOUT : 0u), c);
}

static void put(Conn *c, const char *bytes, size_t n) {
    if (c->dead) return;
    if (!c->out.len) {
        ssize_t sent = send(c->fd, bytes, n, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) { drop(c); return; }
        if (sent > 0) bytes += sent, n -= (size_t)sent;
        if (!n) return;
    }
    if (c->out.len + n > MAX_PENDING) { drop(c); return; }
    buf_add(&c->out, bytes, n);
    want_write(c, 1);
}

static void flush(Conn *c) {
    ssize_t sent = send(c->fd, c->out.data, c->out.len, MSG_NOSIGNAL);
    if (sent < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK) drop(c);
        return;
    }
    buf_drop(&c->out, (size_t)sent);
    if (!c->out.len) want_write(c, 0);
}

/* One SSE event as one HTTP chunk. */
static size_t event(char *out, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return (size_t)sprintf(out, "%x\r\n%s\r\n", n, text);
}

#define CHUNK "data: {\"id\":\"chatcmpl-%016llx\",\"object\":\"chat.completion.chunk\",\"created\":1764500000," \
              "\"model\":\"mock-1\",\"choices\":["

static size_t content_event(char *out, Conn *c) {
    return event(out, CHUNK "{\"index\":0,\"delta\":{\"content\":\"%s\"},\"finish_reason\":null}],\"obfuscation\":\"%020llu\"}\n\n",
                 (unsigned long long)c->id, WORDS[c->sent & 15], (unsigned long long)now_ns());
}

static size_t tail(char *out, Conn *c) {
    unsigned long long id = c->id;
    size_t n = event(out, CHUNK "{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n", id);
    if (c->usage)
        n += event(out + n, CHUNK "],\"usage\":{\"prompt_tokens\":120,\"completion_tokens\":%ld,\"total_tokens\":%ld}}\n\n",
                   id, c->tokens, c->tokens + 120);
    n += event(out + n, "data: [DONE]\n\n");
    memcpy(out + n, "0\r\n\r\n", 5);
    return n + 5;
}

/* What is due now: one content chunk; with the last one also the end of the stream. */
static void beat(Conn *c) {
    char out[4096];
    size_t n = content_event(out, c);
    c->sent++, chunks++;
    if (c->sent == c->tokens) {
        n += tail(out + n, c);
        c->streaming = 0, open_streams--, finished++;
    } else {
        c->due += c->interval;
        heap_add(c);
    }
    put(c, out, n);
}

static long field(const char *body, size_t n, const char *name, long absent) {
    const char *at = memmem(body, n, name, strlen(name)), *end = body + n;
    if (!at) return absent;
    for (at += strlen(name); at < end && (*at == ' ' || *at == ':'); at++) {}
    if (at < end && *at == 't') return 1;
    return at < end && *at >= '0' && *at <= '9' ? strtol(at, NULL, 10) : 0;
}

static void start_stream(Conn *c, const char *body, size_t n) {
    static const char HEAD[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n";
    char out[1024];
    long interval_us = field(body, n, "\"mock_interval_us\"", 20000);
    long first_us = field(body, n, "\"mock_first_us\"", interval_us);
    c->tokens = field(body, n, "\"mock_tokens\"", 64);
    if (c->tokens < 1) c->tokens = 1;
    c->usage = field(body, n, "\"include_usage\"", 0) == 1;
    c->interval = (uint64_t)interval_us * 1000;
    c->sent = 0, c->streaming = 1, c->id = 0x5eed0000ull + streams++;
    open_streams++;
    memcpy(out, HEAD, sizeof HEAD - 1);
    size_t head = sizeof HEAD - 1;
    put(c, out, head + event(out + head, CHUNK "{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n",
                             (unsigned long long)c->id));
    if (c->dead) return;
    c->due = now_ns() + (uint64_t)first_us * 1000;
    if (c->interval && field(body, n, "\"mock_in_step\"", 0) == 1) c->due += c->interval - c->due % c->interval;
    heap_add(c);
}

static void answer_json(Conn *c, const char *json) {
    char out[2048];
    put(c, out, (size_t)snprintf(out, sizeof out, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                                 strlen(json), json));
}

static void answer_whole(Conn *c) {
    static const char JSON[] =
        "{\"id\":\"chatcmpl-00000000deadbeef\",\"object\":\"chat.completion\",\"created\":1764500000,\"model\":\"mock-1\","
        "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"A whole completion, sent at once. The text is long "
        "enough to make the answer about five hundred bytes, as short answers of a chat model are.\",\"refusal\":null},"
        "\"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":120,\"completion_tokens\":32,\"total_tokens\":152}}";
    answer_json(c, JSON);
}

static void answer_counters(Conn *c) {
    char json[512];
    snprintf(json, sizeof json,
             "{\"connections\":%lu,\"open_streams\":%lu,\"streams\":%lu,\"finished\":%lu,\"aborted\":%lu,\"chunks\":%lu,\"requests\":%lu}",
             connections, open_streams, streams, finished, aborted, chunks, requests);
    answer_json(c, json);
}

/* Takes one whole request off the buffer. 0 when there is none yet. */
static int take_request(Conn *c) {
    char *end = memmem(c->in.data, c->in.len, "\r\n\r\n", 4);
    if (!end) {
        if (c->in.len > MAX_HEAD) drop(c);
        return 0;
    }
    size_t head = (size_t)(end - c->in.data) + 4;
    const char *length = header_value(c->in.data, c->in.data + head, "content-length:");
    long body = length ? strtol(length, NULL, 10) : 0;
    if (body < 0 || body > MAX_BODY || header_value(c->in.data, c->in.data + head, "transfer-encoding:")) {
        fprintf(stderr, "a request without a usable Content-Length\n");
        drop(c);
        return 0;
    }
    if (c->in.len < head + (size_t)body) return 0;
    if (memcmp(c->in.data, "GET ", 4) == 0) answer_counters(c);
    else if (requests++, field(c->in.data + head, (size_t)body, "\"stream\"", 0) == 1) start_stream(c, c->in.data + head, (size_t)body);
    else answer_whole(c);
    if (!c->dead) buf_drop(&c->in, head + (size_t)body);
    return !c->dead;
}

static void readable(Conn *c) {
    buf_room(&c->in, 16384);
    ssize_t n = recv(c->fd, c->in.data + c->in.len, c->in.cap - c->in.len, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) { drop(c); return; }
    if (n > 0) c->in.len += (size_t)n;
    while (!c->dead && !c->streaming && c->in.len && take_request(c)) {}
}

static void greet(int listener) {
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        Conn *c = calloc(1, sizeof *c);
        if (!c) die("calloc");
        c->fd = fd;
        no_delay(fd);
        connections++;
        watch(ep, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLRDHUP, c);
    }
}

static void run_due(void) {
    for (uint64_t now = now_ns(); heap_len && heap[1]->due <= now;) {
        Conn *c = heap[1];
        heap_remove(c);
        beat(c);
        if (!c->dead && !c->streaming && c->in.len) while (!c->dead && !c->streaming && take_request(c)) {}
    }
    if (heap_len) arm(timer, heap[1]->due);
}

static int listen_on(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
    struct sockaddr_in a = loopback(port);
    socklen_t len = sizeof a;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 8192) < 0) die("listen");
    getsockname(fd, (struct sockaddr *)&a, &len);
    printf("{\"port\": %d}\n", ntohs(a.sin_port));
    fflush(stdout);
    return fd;
}

int main(int argc, char **argv) {
    struct epoll_event events[BATCH];
    signal(SIGPIPE, SIG_IGN);
    allow_many_files();
    ep = epoll_create1(EPOLL_CLOEXEC);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    int listener = listen_on(argc > 1 ? atoi(argv[1]) : 0);
    watch(ep, EPOLL_CTL_ADD, listener, EPOLLIN, &listener);
    watch(ep, EPOLL_CTL_ADD, timer, EPOLLIN, &timer);
    for (;;) {
        int n = epoll_wait(ep, events, BATCH, -1);
        if (n < 0 && errno != EINTR) die("epoll_wait");
        for (int i = 0; i < n; i++) {
            void *who = events[i].data.ptr;
            uint64_t ticks;
            if (who == &listener) greet(listener);
            else if (who == &timer) { if (read(timer, &ticks, sizeof ticks) < 0 && errno != EAGAIN) die("timer"); }
            else {
                Conn *c = who;
                if (!c->dead && events[i].events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) drop(c);
                if (!c->dead && events[i].events & EPOLLOUT) flush(c);
                if (!c->dead && events[i].events & EPOLLIN) readable(c);
            }
        }
        run_due();
        bury();
    }
}
