// EASY backfilling by hand in C++, first come, first served: the practical limit that the compiled kernel is measured against.
//
//     easy JOBS PROCS STARTS
//
// JOBS holds four columns of int64, one after the other: submit, runtime, planned, procs; jobs in order of arrival, runtime
// already cut to what is planned. For every line on standard input the program simulates once and answers with the seconds
// that took, its working arrays made before, as for the kernel. At the end of the input it writes the starts (int64) of the last run.
//
// Coincident events are a batch: all terminations of an instant, then all arrivals, then one scheduling pass.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <queue>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using Time = std::int64_t;
using Procs = std::int64_t;
using Index = std::int64_t;
constexpr Time never = std::numeric_limits<Time>::max();

struct Job {
    Time submit, runtime, planned;
    Procs procs;
};

// What a pass reads of a waiting job, side by side, so that the search of the queue runs through memory in order.
struct Waiting {
    Time planned;
    Procs procs;
    Index job;
};

struct Running {
    Time expected_end;
    Procs procs;
    Index job;
    bool operator<(const Running& other) const {
        return expected_end != other.expected_end ? expected_end < other.expected_end : job < other.job;
    }
};

class Easy {
public:
    Easy(const std::vector<Job>& jobs, Procs machine_procs) : jobs_(jobs), free_(machine_procs), start_(jobs.size(), -1) {
        queue_.reserve(jobs.size());
        const auto at_once = static_cast<std::size_t>(std::min<Procs>(machine_procs, jobs.size())) + 1;
        running_.reserve(at_once);
        std::vector<Event> heap;
        heap.reserve(at_once);
        ends_ = Ends(std::greater<Event>(), std::move(heap));
    }

    void run() {
        Index next = 0;
        const Index count = static_cast<Index>(jobs_.size());
        while (next < count || !ends_.empty()) {
            now_ = std::min(next < count ? jobs_[next].submit : never, ends_.empty() ? never : ends_.top().first);
            while (!ends_.empty() && ends_.top().first == now_) {
                finish(ends_.top().second);
                ends_.pop();
            }
            for (; next < count && jobs_[next].submit == now_; ++next)
                queue_.push_back({jobs_[next].planned, jobs_[next].procs, next});
            pass();
        }
    }

    const std::vector<Time>& starts() const { return start_; }

private:
    using Event = std::pair<Time, Index>;
    using Ends = std::priority_queue<Event, std::vector<Event>, std::greater<Event>>;

    void start(const Waiting& waiting) {
        start_[waiting.job] = now_;
        free_ -= waiting.procs;
        ends_.emplace(now_ + jobs_[waiting.job].runtime, waiting.job);
        const Running entry{now_ + waiting.planned, waiting.procs, waiting.job};
        running_.insert(std::upper_bound(running_.begin(), running_.end(), entry), entry);
    }

    void finish(Index job) {
        const Running entry{start_[job] + jobs_[job].planned, jobs_[job].procs, job};
        running_.erase(std::lower_bound(running_.begin(), running_.end(), entry));
        free_ += entry.procs;
        freed_ = true;
    }

    void pass() {
        // Nothing was freed: the head and all who were blocked behind it still are, so only the newcomers need a look.
        if (!freed_ && seen_ > first_ && shadow_ > now_) {
            backfill(seen_);
        } else {
            while (first_ < queue_.size() && queue_[first_].procs <= free_) start(queue_[first_++]);
            if (first_ < queue_.size()) {
                reserve_for_head();
                backfill(first_ + 1);
            }
        }
        seen_ = queue_.size();
        freed_ = false;
    }

    // The shadow time is when the head fits by the expected ends; all jobs that are expected to end by then count.
    void reserve_for_head() {
        const Procs wanted = queue_[first_].procs;
        Procs available = free_;
        shadow_ = now_;
        for (const Running& entry : running_) {
            if (available >= wanted && entry.expected_end > shadow_) break;
            available += entry.procs;
            shadow_ = std::max(shadow_, entry.expected_end);
        }
        extra_ = available - wanted;
    }

    // A candidate may start if it fits and ends by the shadow time, or takes none but the extra processors.
    bool may_start(const Waiting& candidate) {
        if (candidate.procs > free_) return false;
        if (candidate.planned <= shadow_ - now_) return true;
        if (candidate.procs > extra_) return false;
        extra_ -= candidate.procs;
        return true;
    }

    // Starts the candidates from this place of the queue on that may, and closes their gaps; nobody starts on no processors.
    void backfill(std::size_t place) {
        std::size_t kept = place;
        for (; free_ > 0 && place < queue_.size(); ++place) {
            const Waiting candidate = queue_[place];
            if (may_start(candidate))
                start(candidate);
            else
                queue_[kept++] = candidate;
        }
        if (kept != place) queue_.erase(queue_.begin() + kept, queue_.begin() + place);
    }

    const std::vector<Job>& jobs_;
    Procs free_;
    std::vector<Time> start_;
    std::vector<Waiting> queue_;  // the waiting jobs are those from place first_ on
    std::size_t first_ = 0;
    std::size_t seen_ = 0;  // places before this one have been looked at in an earlier pass
    bool freed_ = true;     // since the last pass
    Time now_ = 0;
    Time shadow_ = 0;
    Procs extra_ = 0;
    std::vector<Running> running_;  // in order of expected end
    Ends ends_;                     // by time
};

std::vector<Job> read_jobs(const char* path) {
    std::FILE* file = std::fopen(path, "rb");
    if (!file) throw std::runtime_error(std::string("cannot read ") + path);
    std::vector<Time> numbers;
    std::vector<Time> piece(1 << 16);
    for (std::size_t got; (got = std::fread(piece.data(), sizeof(Time), piece.size(), file)) > 0;)
        numbers.insert(numbers.end(), piece.begin(), piece.begin() + got);
    std::fclose(file);
    const std::size_t count = numbers.size() / 4;
    std::vector<Job> jobs(count);
    for (std::size_t i = 0; i < count; ++i)
        jobs[i] = {numbers[i], numbers[count + i], numbers[2 * count + i], numbers[3 * count + i]};
    return jobs;
}

void write_starts(const char* path, const std::vector<Time>& starts) {
    std::FILE* file = std::fopen(path, "wb");
    const bool written = file && std::fwrite(starts.data(), sizeof(Time), starts.size(), file) == starts.size();
    if (!file || std::fclose(file) != 0 || !written) throw std::runtime_error(std::string("cannot write ") + path);
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 4) {
        std::cerr << "usage: easy JOBS PROCS STARTS\n";
        return 2;
    }
    try {
        const std::vector<Job> jobs = read_jobs(arguments[1]);
        const Procs machine_procs = std::stoll(arguments[2]);
        std::vector<Time> starts;
        for (std::string line; std::getline(std::cin, line);) {
            Easy easy(jobs, machine_procs);
            const auto begin = std::chrono::steady_clock::now();
            easy.run();
            const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
            std::printf("%.9f\n", taken.count());
            std::fflush(stdout);
            starts = easy.starts();
        }
        write_starts(arguments[3], starts);
    } catch (const std::exception& error) {
        std::cerr << "easy: " << error.what() << '\n';
        return 1;
    }
}
