// The worker once more, in C++17: handles have owners, errors are exceptions.
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include <cwist/sys/job/durable_queue_ext.h>

namespace
{

constexpr std::uint64_t claim_timeout_ms = 10000;
constexpr std::uint64_t visibility_timeout_ms = 60000;

template <auto end> struct Ender {
    template <typename Handle> void operator()(Handle *handle) const noexcept
    {
        end(handle);
    }
};
using Conn = std::unique_ptr<cwist_job_conn_t, Ender<cwist_job_conn_close>>;
using Queue = std::unique_ptr<cwist_job_queue_t, Ender<cwist_job_queue_destroy>>;
using Job = std::unique_ptr<cwist_job_t, Ender<cwist_job_destroy>>;

void check(const cwist_error_t &error)
{
    if (!cwist_error_is_ok(&error)) {
        throw std::runtime_error(cwist_job_last_error());
    }
}

Conn connect(const char *url)
{
    cwist_job_conn_t *conn = nullptr;
    check(cwist_job_conn_open(&conn, url, nullptr));
    return Conn(conn);
}

Queue open(const Conn &conn, const char *name)
{
    cwist_job_queue_opts_t opts{};
    opts.name = name;
    opts.visibility_timeout_ms = visibility_timeout_ms;
    cwist_job_queue_t *queue = nullptr;
    check(cwist_job_queue_open(&queue, conn.get(), &opts));
    return Queue(queue);
}

Job claim(const Queue &queue)
{
    cwist_job_t *job = nullptr;
    check(cwist_job_queue_claim(queue.get(), claim_timeout_ms, &job));
    return Job(job);
}

int number_of(const Job &job)
{
    std::size_t length = 0;
    const auto *bytes = static_cast<const char *>(cwist_job_payload(job.get(), &length));
    const char *type = cwist_job_type(job.get());
    if (type == nullptr || std::string_view(type) != "number") {
        throw std::runtime_error("the type of a job is lost");
    }
    return std::stoi(std::string(bytes, length));
}

void work(const Queue &queue, int count)
{
    constexpr int fails_once = 7;
    int done = 0;
    int retried = 0;
    int sum = 0;
    while (done < count) {
        Job job = claim(queue);
        const int number = number_of(job);
        if (number == fails_once && cwist_job_attempts(job.get()) == 1) {
            retried++;
            check(cwist_job_queue_nack_reason(queue.get(), job.release(), "once"));
            continue;
        }
        done++;
        sum += number;
        check(cwist_job_queue_ack(queue.get(), job.release()));
    }
    std::cout << "done " << done << " retried " << retried << " sum " << sum << "\n";
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 4) {
        std::cerr << "usage: " << argv[0] << " URL QUEUE COUNT\n";
        return 2;
    }
    try {
        const Conn conn = connect(argv[1]);
        const Queue queue = open(conn, argv[2]);
        work(queue, std::stoi(argv[3]));
        return EXIT_SUCCESS;
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
        return EXIT_FAILURE;
    }
}
