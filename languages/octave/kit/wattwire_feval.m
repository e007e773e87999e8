function [problem, result] = wattwire_feval (result_count, action, varargin)
  % Call a function that returns one result or none.
  %
  % `problem` is empty, or a cell with the identifier and the message of the error that the function
  % raised: mexCallMATLABWithTrap of Octave does not return them.
  problem = {};
  result = [];
  try
    if result_count > 0
      result = action (varargin{:});
    else
      action (varargin{:});
    end
  catch caught
    problem = {caught.identifier, caught.message};
  end
end
