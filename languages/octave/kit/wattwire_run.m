function wattwire_run (roles, words)
  % Run the node of a cell with a command line, and end the process.
  %
  % `roles` is a structure that maps roles to functions, and `words` is a cell of strings.
  reason = kit_problem ();
  if ~isempty (reason)
    % Without the MEX function, only a file can reach descriptor 3.
    lines = fopen ('/dev/fd/3', 'w');
    fprintf (lines, 'ERROR %s\n', jsonencode (struct ('code', 4, 'key', [], 'reason', reason)));
    fclose (lines);
    fprintf (2, '%s\n', reason);
    exit (4);
  end
  wattwire_kit ('run', words, roles);
end

function reason = kit_problem ()
  % Return the reason that wattwire_kit does not run in this Octave, or ''. MATLAB checks its own
  % MEX functions.
  reason = '';
  if ~exist ('OCTAVE_VERSION', 'builtin')
    return
  end
  path = file_in_loadpath ('wattwire_kit.mex');  % `which` would load the file
  try
    built_with = wattwire_kit ('built_with');
    cause = '';
  catch problem
    built_with = sentence_in (path);
    cause = [' Octave cannot load it (' strrep(problem.message, char (10), '; ') ').'];
  end
  if isempty (cause) && strcmp (built_with, sentence_with ([OCTAVE_VERSION '.']))
    return
  end
  reason = sprintf ( ...
    ['%s: %s This is Octave %s, and a MEX function runs only in the version for which it was ' ...
     'compiled.%s Delete the folder %s, and run the same command again: wattwire then ' ...
     'compiles it.'], ...
    path, built_with, OCTAVE_VERSION, cause, fileparts (path));
end

function sentence = sentence_with (version)
  % Return the sentence of wattwire_kit.cpp, or its beginning without a version.
  sentence = ['wattwire_kit was built with Octave ' version];
end

function sentence = sentence_in (path)
  % Return the sentence in a MEX file that names its Octave. The file is not loaded.
  content = '';
  if ~isempty (path)
    content = fileread (path);
  end
  begin = strfind (content, sentence_with (''));
  if isempty (begin)
    sentence = 'It is not a MEX file of wattwire_kit.';
  else
    sentence = strtok (content(begin(1):end), char (0));
  end
end
