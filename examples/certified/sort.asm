; The input in ascending order, by insertion.
;   r1 input's address, r2 its words
        add   r5, r1, r2       ; end
        addi  r6, r1, 1        ; first word that is not yet in order
next:   jge   r6, r5, done
        load  r7, r6, 0        ; the word to insert
        addi  r8, r6, 0        ; where to
shift:  jeq   r8, r1, here
        load  r9, r8, -1
        jge   r7, r9, here
        store r9, r8, 0
        addi  r8, r8, -1
        jump  shift
here:   store r7, r8, 0
        addi  r6, r6, 1
        jump  next
done:   halt  r1, r2
