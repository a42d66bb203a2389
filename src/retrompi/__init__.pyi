"""The public names of the package: one a line, for type checkers and, read by ``__init__.py``, for the program itself."""

from .api.asking import Options as Options
from .api.background import in_background as in_background
from .api.judging import Claim as Claim
from .api.judging import Verdicts as Verdicts
from .api.judging import claim as claim
from .api.judging import claims as claims
from .api.judging import verdicts as verdicts
from .api.parts import Model as Model
from .api.parts import Platform as Platform
from .api.parts import list_models as list_models
from .api.parts import list_platforms as list_platforms
from .api.parts import model as model
from .api.parts import platform as platform
from .api.paths import CriticalPath as CriticalPath
from .api.programs import Comparison as Comparison
from .api.programs import Execution as Execution
from .api.programs import Runtimes as Runtimes
from .api.programs import compare as compare
from .api.programs import compare_runtimes as compare_runtimes
from .api.programs import run as run
from .api.runs import Anatomy as Anatomy
from .api.runs import Curve as Curve
from .api.runs import Run as Run
from .api.runs import message as message
from .api.runs import pingpong as pingpong
from .api.runs import replay as replay
from .api.searches import Search as Search
from .api.searches import optimise as optimise
from .api.studies import StudyResult as StudyResult
from .api.studies import study as study
from .api.studies import sweep as sweep
from .base.errors import EngineError as EngineError
from .base.errors import InputError as InputError
from .base.errors import RetrompiError as RetrompiError
from .base.errors import StoreError as StoreError
from .base.errors import UsageError as UsageError
from .sim.cautions import Caution as Caution
from .sim.simulate import SimulationEnded as SimulationEnded
from .store.database import open_store as open_store

__version__: str
