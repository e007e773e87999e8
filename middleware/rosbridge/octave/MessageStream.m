classdef MessageStream < handle
  % The bytes that have arrived, which are objects of JSON without separators. No byte is examined
  % twice.
  properties (Access = private)
    bytes = zeros (1, 0, 'uint8');
    depth = 0;
    is_in_string = false;
    is_escaped = false;
  end

  properties (Constant)
    BYTES_MAX = 2 ^ 24;
  end

  methods
    function messages = add (self, arrived)
      % Add a row of bytes, and return the objects that are complete, as a row of cells.
      known_bytes = numel (self.bytes);
      self.bytes = [self.bytes arrived];
      starts_after = [0 (known_bytes + self.ends (arrived))];
      messages = cell (1, numel (starts_after) - 1);
      for at = 1:numel (messages)
        messages{at} = self.bytes(starts_after(at) + 1:starts_after(at + 1));
      end
      self.bytes = self.bytes(starts_after(end) + 1:end);
      if numel (self.bytes) > self.BYTES_MAX
        error ('it sent a message of more than %d bytes', self.BYTES_MAX);
      end
    end
  end

  methods (Access = private)
    function positions = ends (self, arrived)
      % Return the positions in `arrived` at which an object ends.
      is_escaped = self.escaped (arrived);
      is_quote = arrived == '"' & ~is_escaped;
      is_in_string = xor (mod (cumsum (is_quote), 2), self.is_in_string);
      steps = double (arrived == '{') - double (arrived == '}');
      steps(is_in_string | is_escaped) = 0;
      depths = self.depth + cumsum (steps);
      % An object that ends without a beginning is a message too, and the next depth is then 0.
      depths = depths - min (0, cummin (depths));
      positions = find (steps < 0 & depths == 0);
      self.depth = depths(end);
      self.is_in_string = is_in_string(end);
    end

    function is_escaped = escaped (self, arrived)
      % Return for each byte whether a backslash before it takes away its meaning.
      is_escaped = false (1, numel (arrived) + 1);
      is_escaped(1) = self.is_escaped;
      for at = find (arrived == '\')
        is_escaped(at + 1) = ~is_escaped(at);
      end
      self.is_escaped = is_escaped(end);
      is_escaped(end) = [];
    end
  end
end
