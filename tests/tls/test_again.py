"""Tests of the other folders, here over encrypted connections."""

from __future__ import annotations

from tests.conformance.test_blocked_claim import (
    test_a_new_job_reaches_a_blocked_claim,
    test_claims_keep_their_time,
    test_close_wakes_blocked_claims,
    test_interrupt_wakes_only_the_claims_of_its_handle,
    test_many_blocked_claims_share_the_jobs,
)
from tests.conformance.test_lifecycle import (
    test_a_job_goes_in_and_comes_out,
    test_jobs_enqueued_before_any_worker_arrive_in_order,
)
from tests.conformance.test_payloads import (
    test_64_mebibytes_on_redis,
    test_bytes_are_exact,
)
from tests.fault.test_cuts import (
    test_a_cut_enqueue_is_stored_once_or_not,
    test_a_cut_leaves_nothing_behind,
)
from tests.fault.test_outages import (
    fragile,
    frozen,
    test_a_blocked_claim_outlives_a_freeze,
    test_a_blocked_claim_outlives_a_restart,
    test_a_claim_reports_the_outage_at_its_deadline,
    test_a_half_open_connection,
    test_calls_to_a_dead_server_fail_in_time_and_work_afterwards,
    test_calls_to_a_frozen_server_end_in_time,
    test_closing_is_quick_while_the_server_is_frozen,
    watcher,
)
from tests.fault.test_processes import (
    test_a_storm_of_signals,
    test_ctrl_c_ends_a_claim,
    test_fork,
    test_sockets_are_not_inherited,
    test_the_end_of_the_interpreter,
)
from tests.fault.test_threads import (
    test_a_blocked_claim_delays_nobody,
    test_interrupts_in_the_same_instant_as_jobs,
    test_sixteen_threads_on_one_queue,
)

__all__ = [
    "fragile",
    "frozen",
    "test_64_mebibytes_on_redis",
    "test_a_blocked_claim_delays_nobody",
    "test_a_blocked_claim_outlives_a_freeze",
    "test_a_blocked_claim_outlives_a_restart",
    "test_a_claim_reports_the_outage_at_its_deadline",
    "test_a_cut_enqueue_is_stored_once_or_not",
    "test_a_cut_leaves_nothing_behind",
    "test_a_half_open_connection",
    "test_a_job_goes_in_and_comes_out",
    "test_a_new_job_reaches_a_blocked_claim",
    "test_a_storm_of_signals",
    "test_bytes_are_exact",
    "test_calls_to_a_dead_server_fail_in_time_and_work_afterwards",
    "test_calls_to_a_frozen_server_end_in_time",
    "test_claims_keep_their_time",
    "test_close_wakes_blocked_claims",
    "test_closing_is_quick_while_the_server_is_frozen",
    "test_ctrl_c_ends_a_claim",
    "test_fork",
    "test_interrupt_wakes_only_the_claims_of_its_handle",
    "test_interrupts_in_the_same_instant_as_jobs",
    "test_jobs_enqueued_before_any_worker_arrive_in_order",
    "test_many_blocked_claims_share_the_jobs",
    "test_sixteen_threads_on_one_queue",
    "test_sockets_are_not_inherited",
    "test_the_end_of_the_interpreter",
    "watcher",
]
