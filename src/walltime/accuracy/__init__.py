"""Measure the accuracy of users' requests and of predictions, and suggest better requests: the commands estimates, suggest and predict."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.accuracy.accuracy import WalltimeAccuracy as WalltimeAccuracy, estimate_accuracy as estimate_accuracy
    from walltime.accuracy.adjusted import AdjustedWalltimes as AdjustedWalltimes, adjust_walltimes as adjust_walltimes
    from walltime.accuracy.advice import KindAdvice as KindAdvice, UserAdvice as UserAdvice, advise_users as advise_users
    from walltime.accuracy.advice_gains import AdviceGains as AdviceGains, UserGain as UserGain, simulate_advice as simulate_advice
    from walltime.accuracy.page import accuracy_page as accuracy_page

__getattr__, __dir__, __all__ = lazy(__name__)
