"""What a socket's receive buffer is on Linux: memory of frames, of which a part is a window of whole segments."""

from __future__ import annotations

import pytest

from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.layout import Layout
from retrompi.spec.question import Question, pingpong
from retrompi.spec.sockets import kernel_buffer

TRENDNET, GA620, DS20 = "p4-1800*2@ge-trendnet", "p4-1800*2@ge-ga620", "alpha-ds20*2@ge-syskonnect-jumbo"


def _mbps(platform: str, buffer: str, *sets: str) -> float:
    given = [f"platform.host.window={buffer}", f"platform.host.sndbuf={buffer}", *sets]
    (row,) = simulate.benchmark(Question("sockets:netpipe", platform, pingpong([1 << 20], 3), "distributed", overrides=given))
    return float(row["size_B"] * 8 / row["time_us"])


def test_a_driver_that_takes_large_frames_narrows_the_window() -> None:
    """87380 B hold 12 segments of the TrendNet (6320 B a frame), enough of them on the GA620 (1712 B)."""
    assert _mbps(TRENDNET, "87380 B") < 0.65 * _mbps(TRENDNET, "512 KiB")
    assert _mbps(GA620, "87380 B") == pytest.approx(_mbps(GA620, "512 KiB"), rel=0.02)
    assert _mbps(TRENDNET, "87380 B", "platform.host.rx_buffer=1712 B") == pytest.approx(_mbps(TRENDNET, "512 KiB"), rel=0.02)


def test_bandwidth_rises_with_the_buffer_and_then_stays() -> None:
    for platform in (TRENDNET, DS20):
        rates = [_mbps(platform, b) for b in ("32 KiB", "64 KiB", "128 KiB", "256 KiB")]
        assert rates[0] < rates[1] < rates[2]
        assert rates[3] == pytest.approx(rates[2], rel=0.1)


def test_a_window_of_less_than_a_frame_still_moves_data() -> None:
    assert _mbps(DS20, "4 KiB") > 0.1


def test_linux_doubles_what_it_is_asked_for() -> None:
    for platform, factor in ((GA620, 2), ("nt-pair", 1)):
        layout = Layout(registry.platform(platform), [0, 1])
        assert kernel_buffer(layout, 16384) == factor * 16384


def test_a_card_of_another_system_counts_data() -> None:
    assert all(h.rx_buffer == 0 for h in registry.platform("nt4-p6-200*2@ge-ga620").hosts)
    assert all(h.rx_buffer > 0 for h in registry.platform("linux-p2-450*2@ge-ga620").hosts)
