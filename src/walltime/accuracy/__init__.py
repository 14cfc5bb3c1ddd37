"""Measure the accuracy of users' requests and of predictions, and suggest better requests: the commands estimates, suggest and predict."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.accuracy.accuracy import WalltimeAccuracy as WalltimeAccuracy
    from walltime.accuracy.accuracy import estimate_accuracy as estimate_accuracy
    from walltime.accuracy.adjusted import AdjustedWalltimes as AdjustedWalltimes
    from walltime.accuracy.adjusted import adjust_walltimes as adjust_walltimes
    from walltime.accuracy.advice import KindAdvice as KindAdvice
    from walltime.accuracy.advice import UserAdvice as UserAdvice
    from walltime.accuracy.advice import advise_users as advise_users
    from walltime.accuracy.advice_gains import AdviceGains as AdviceGains
    from walltime.accuracy.advice_gains import UserGain as UserGain
    from walltime.accuracy.advice_gains import simulate_advice as simulate_advice
    from walltime.accuracy.page import accuracy_page as accuracy_page

__getattr__, __dir__, __all__ = lazy(__name__)
