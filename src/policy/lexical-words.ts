const list = (text: string) => new Set(text.split(/\s+/).filter(Boolean))

/** Words of issues that say nothing about a place in the code. */
export const commonWords: ReadonlySet<string> = list(`
  a about above accept accepted across actual actually after again against ago all almost alone along already also although always among and another answer any anybody anyone
  anything apparently appear apply are aren around ask asked away back bad because been before begin behave behaviour behavior behind being believe below better between both
  break broken bug but call called caller came can cannot case cases cause certain change changed check clear clearly code colleague come comes complain complete could couldn
  current currently customer day days default did didn different directly does doesn doing done down each earlier easily either else empty end enough entirely entry even
  every everybody everyone everything exactly example except exception expect expected explicitly fact fail failed fails failing false far few field file files find fine first
  fix following follow for forget form found from full further gave get gets getting give given gives goes going gone good got guess had half happen happened happens hard has
  hasn have having help here how however idea instead into isn issue its itself job just keep kept kind know known last late later least leave left less let lets like likely
  line lines list little long longer look looked looking looks lost lot made main make makes many matter may maybe mean means might mine minute missing month more morning most
  much must myself name named names near need needed needs neither never new next nice night nobody none nor normal not note nothing notice noticed now number obvious odd off
  often old once one ones only onto open option order other others otherwise ought our out over own page part pass passed passing people perhaps place plain please point possible
  print prints probably problem produce program project promised puts python question quite rather reach read real really reason report reported result return returned returns
  right run running runs said same saw say says second see seem seems seen send sense set several shall should shouldn show shown shows side silently simple simply since
  single small some somebody someone something sometimes somewhere soon sort stand start started stays step still stop stops such suddenly support suppose supposed sure take
  taken takes team tell test tests text than thank thanks that the their them then there these they thing things think this those though thought three through time times today
  together told too took tried true try trying turn turned turns twice two type under understand unless until upgrade upgrading upon use used useful user users using usual usually
  value values version very want wanted wants warning was wasn way week well went were what whatever when where whether which while who whole why will with within without won
  word words work worked working works worse would wouldn write writes wrong wrote year years yes yesterday yet you your
  expects happily sadly spelling somehow afterwards instance regardless indeed anyway traced crash crashes error errors exit linux debian windows macos ubuntu docker method function class module package`)

/** Names that every Python program uses: builtins, common modules and their exceptions. */
export const pythonNames: ReadonlySet<string> = list(`
  abs all any bool bytes callable chr classmethod dict dir divmod enumerate eval exec filter float format frozenset getattr hasattr hash help hex id input int isinstance issubclass iter
  len list map max memoryview min next object oct open ord pow print property range repr reversed round self set setattr slice sorted staticmethod str sum super tuple type vars zip cls args kwargs
  True False None import from return yield lambda class def assert raise except finally while with async await global nonlocal pass break continue else elif
  os sys re json time datetime logging pathlib Path collections itertools functools subprocess threading unittest pytest argparse io shutil tempfile random math copy typing dataclasses
  requests numpy pandas django flask
  ArithmeticError AssertionError AttributeError BaseException BrokenPipeError ConnectionError DeprecationWarning EOFError Exception FileExistsError FileNotFoundError ImportError IndexError
  IsADirectoryError JSONDecodeError KeyError KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError NotADirectoryError NotImplementedError OSError OverflowError
  PermissionError RecursionError RuntimeError StopIteration SyntaxError SystemExit TimeoutError TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError ValueError
  UserWarning ZeroDivisionError GitHub JavaScript README append join split strip items keys values get pop update sort read write close startswith endswith encode decode
  main __init__ __main__ __name__ __call__`)
