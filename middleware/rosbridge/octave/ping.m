function ping ()
  session = Session ();
  session.publish_on ('request', false);
  session.subscribe ('reply', @(data) session.keep (data));
  session.await_connected ();
  ask = @(request, timeout_s) call (session, request, timeout_s);
  wattwire_kit ('probe', ask);
  session.ready (wattwire_kit ('now_ns') - session.begin_ns);
  wattwire_kit ('call_all', ask);
  session.close ();
end

function reply = call (session, request, timeout_s)
  % Return the reply to a request, or [] at the timeout.
  deadline_ns = wattwire_kit ('now_ns') + int64 (timeout_s * 1e9);
  session.publish (request);
  while true
    left_ns = deadline_ns - wattwire_kit ('now_ns');
    if left_ns <= 0
      reply = [];
      return
    end
    session.poll (double (left_ns) / 1e9);
    % A std_msgs message has no call number: only the payload identifies the call.
    for data = session.take ()
      reply = data{1};
      if wattwire_kit ('is_reply', reply)
        return
      end
    end
  end
end
