classdef Session < handle
  % A connected client: the bridge, its topics, READY, and loss of the bridge.
  properties (SetAccess = private)
    begin_ns
  end

  properties (Access = private)
    connection
    endpoint
    stream
    messages = {};
    arrivals = {};
    is_text
    prefix
    topic = '';
    on_message
    unconfirmed = {};
  end

  methods
    function self = Session ()
      % Connect to the bridge. An error ends the node.
      self.begin_ns = wattwire_kit ('now_ns');
      self.is_text = wattwire_kit ('text');
      self.prefix = ['/wattwire_' wattwire_kit('string', 'run')];
      self.stream = MessageStream ();
      if exist ('OCTAVE_VERSION', 'builtin')
        pkg ('load', 'instrument-control');
      end
      [host, port] = endpoint_of_bridge ();
      self.endpoint = sprintf ('tcp %s:%d', host, port);
      try
        self.connection = tcpclient (host, port);
        self.operate (struct ('op', 'set_level', 'level', 'info'));
      catch problem
        error ('no bridge at %s (%s); is it running?', self.endpoint, problem.message);
      end
    end

    % --- topics ------------------------------------------------------------------------------

    function publish_on (self, name, is_latched)
      self.topic = [self.prefix '/' name];
      self.open ('advertise', self.topic, 'latch', is_latched);
    end

    function subscribe (self, name, on_message)
      self.on_message = on_message;
      self.open ('subscribe', [self.prefix '/' name], 'compression', 'none');
    end

    function publish (self, data)
      if self.is_text
        value = native2unicode (data, 'UTF-8');
      else
        value = base64_of (data);
      end
      message = struct ('data', value);
      self.operate (struct ('op', 'publish', 'topic', self.topic, 'msg', message));
    end

    function poll (self, timeout_s)
      % Wait for one message of the bridge, and handle it.
      if isempty (self.messages)
        self.receive (timeout_s);
      end
      if isempty (self.messages)
        return
      end
      raw = self.messages{1};
      self.messages(1) = [];
      fields = fields_of (raw);
      if strcmp (fields.op, 'publish')
        self.on_message (payload_of (fields, self.is_text, raw));
      elseif isfield (fields, 'level') && strcmp (fields.level, 'error')
        error ('the bridge reports: %s', fields.msg);
      elseif isfield (fields, 'id')
        self.unconfirmed(strcmp (self.unconfirmed, fields.id)) = [];
      end
    end

    function keep (self, data)
      % Keep an arrival for `take`.
      self.arrivals{end + 1} = data;
    end

    function arrivals = take (self)
      % Return the arrivals since the last call, as a row of cells.
      arrivals = self.arrivals;
      self.arrivals = {};
    end

    % --- READY and the end -------------------------------------------------------------------

    function duration_ns = await_connected (self)
      % Wait until the bridge has confirmed the topics; return the time since the constructor.
      %
      % The bridge confirms that a topic has another end, but not which.
      wattwire_kit ('await_peers', @() self.peers (), @(timeout_s) self.poll (timeout_s));
      duration_ns = wattwire_kit ('now_ns') - self.begin_ns;
    end

    function ready (self, discovery_ns)
      [package, program] = versions ();
      wattwire_kit ('ready', struct ( ...
        'discovery_ns', discovery_ns, ...
        'library', {{'tcpclient', package, program}}, ...
        'effective', struct ( ...
          'type', self.type (), ...
          'protocol', 'rosbridge 2', ...
          'bridge', self.endpoint), ...
        'guarantee', {{'best_effort', 'per_sender', 'drop_oldest'}}));
    end

    function close (self)
      % Let the bridge read and publish what was sent, which it does not confirm, and leave.
      if ~isempty (self.topic)
        pause (double (wattwire_kit ('integer', 'quiet_ms')) / 1e3);
      end
      self.connection = [];
    end
  end

  methods (Access = private)
    function open (self, operation, topic, option, value)
      id = [operation ':' topic];
      self.unconfirmed{end + 1} = id;
      self.operate (struct ( ...
        'op', operation, 'id', id, 'topic', topic, 'type', self.type (), option, value));
    end

    function operate (self, fields)
      data = unicode2native (jsonencode (fields), 'UTF-8');
      if write (self.connection, data) ~= numel (data)
        error ('the bridge was lost: it does not accept messages');
      end
    end

    function receive (self, timeout_s)
      % Wait for bytes, and add the messages that are then complete.
      try
        self.connection.Timeout = timeout_s;
        arrived = read (self.connection, 1);
        waiting_bytes = self.connection.NumBytesAvailable;
        if waiting_bytes > 0
          arrived = [arrived read(self.connection, waiting_bytes)];
        end
        if ~isempty (arrived)
          self.messages = self.stream.add (arrived);
        end
      catch problem
        error ('the bridge was lost: %s', problem.message);
      end
    end

    function count = peers (self)
      count = int64 (0);
      if isempty (self.unconfirmed)
        count = wattwire_kit ('integer', 'peers.count');
      end
    end

    function name = type (self)
      name = 'std_msgs/UInt8MultiArray';
      if self.is_text
        name = 'std_msgs/String';
      end
    end
  end
end

function [host, port] = endpoint_of_bridge ()
  % Return the bridge's TCP server, the third endpoint after the master and the WebSocket server.
  endpoints = wattwire_kit ('strings', 'peers.endpoints');
  words = {};
  if numel (endpoints) > 2
    words = regexp (endpoints{3}, '^(.+):(\d{1,5})$', 'tokens', 'once');
  end
  if isempty (words) || str2double (words{2}) > 65535
    wattwire_kit ('bad_spec', 'peers.endpoints', strjoin (endpoints, ', '), ...
                  'HOST:PORT of the master and of the bridge (websocket, tcp, udp)');
  end
  host = words{1};
  port = str2double (words{2});
end

function fields = fields_of (raw)
  % Return the fields of an operation.
  try
    fields = jsondecode (native2unicode (raw, 'UTF-8'));
  catch problem
    no_message (raw, problem.message);
  end
  if ~isstruct (fields) || ~isfield (fields, 'op') || ~ischar (fields.op)
    no_message (raw, 'it has no op');
  end
end

function data = payload_of (fields, is_text, raw)
  % Return the payload of a publication as a row of bytes; a text is then UTF-8.
  try
    value = fields.msg.data;
    if ~ischar (value)
      error ('data has another type');
    end
    if is_text
      data = unicode2native (value, 'UTF-8');
    else
      data = bytes_of (value);
    end
  catch problem
    no_message (raw, problem.message);
  end
end

function no_message (raw, reason)
  shown = native2unicode (raw(1:min (end, 120)), 'UTF-8');
  error ('the bridge sent %s, which is no message of the protocol (%s)', shown, reason);
end

function text = base64_of (data)
  % Return the base64 of a row of bytes, which may be empty.
  text = '';
  if ~isempty (data)
    text = matlab.net.base64encode (data);
  end
end

function data = bytes_of (text)
  % Return the bytes of a base64, which may be empty.
  data = zeros (1, 0, 'uint8');
  if ~isempty (text)
    data = matlab.net.base64decode (text);
  end
end

function [package, program] = versions ()
  % Return the versions of the package with tcpclient, and of the program.
  if exist ('OCTAVE_VERSION', 'builtin')
    description = pkg ('list', 'instrument-control');
    package = description{1}.version;
    program = ['Octave ' OCTAVE_VERSION];
  else
    package = version ();
    program = ['MATLAB ' version()];
  end
end
