from .calls import read_calls
from .recognise import recognise
from .make import make
