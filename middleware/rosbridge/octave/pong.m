function pong ()
  session = Session ();
  % A ping that subscribes anew for each reply (`wait = poll`) receives only a latched one.
  session.publish_on ('reply', strcmp (wattwire_kit ('string', 'settings.wait'), 'poll'));
  session.subscribe ('request', @(request) answer (session, request));
  session.ready (session.await_connected ());
  wattwire_kit ('poll', @(timeout_s) session.poll (timeout_s));
  session.close ();
end

function answer (session, request)
  reply = wattwire_kit ('serve', request);
  if isa (reply, 'uint8')
    session.publish (reply);
    wattwire_kit ('served');
  end
end
